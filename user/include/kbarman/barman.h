/* SPDX-License-Identifier: MIT */
/*
 * Barman captures: read (32 and 64 bits, both byte orders, linear and circular,
 * protocol 1 to 3) and write (this machine's byte order and 64 bits unless said
 * otherwise). The format's source is Arm's "Barman V2 Protocol" text; what that
 * leaves open is in kbarman-formats(5).
 */
#ifndef KBARMAN_BARMAN_H
#define KBARMAN_BARMAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <kbarman/error.h>
#include <kbarman/event.h>
#include <kbarman/text.h>

#ifdef __cplusplus
extern "C" {
#endif

struct kb_task {
	uint64_t timestamp;		/* ticks: valid from then on */
	uint32_t task_id;
	uint32_t name_ptr;
	const char *name;		/* NULL: name_ptr is outside the table */
};

struct kb_map {
	uint64_t timestamp;		/* ticks; 0 where the capture has no tasks */
	uint32_t task_id;		/* 0 = the kernel's, holds for every task */
	uint32_t image_ptr;
	uint64_t base_address;
	uint64_t length;
	uint64_t image_offset;		/* of base_address, in the file */
	const char *image;
	struct kb_text file;		/* which of all files that are called so:
					 * "MAJOR:MINOR:INODE:SIZE:MTIME"; empty where the
					 * capture does not say. See kbarman-formats(5) */
};

struct kb_pmu {
	uint64_t configuration_timestamp;
	uint64_t mpidr;
	uint32_t midr;
	uint32_t cluster_id;
	uint32_t num_counters;
	uint32_t *counter_types;	/* num_counters */
};

struct kb_chart {
	uint32_t name_ptr;
	const char *name;
	uint8_t series_composition;
	uint8_t rendering_type;
	uint8_t boolean_flags;
};

struct kb_series {
	uint32_t chart_index;
	uint32_t name_ptr, units_ptr, description_ptr;
	const char *name, *units, *description;
	uint32_t colour;
	double multiplier;
	uint8_t series_class;
	uint8_t display;
	uint8_t boolean_flags;
};

/* A capture's header, decoded. Strings and arrays belong to the reader. */
/*
 * A task with all of `bits` in its state is in the one that Linux calls by that letter: S
 * (sleeps), D (waits, not to be interrupted), I (as D, but idle), T (stopped), t (traced), P
 * (parked), X (dead), Z (a zombie).
 */
struct kb_state {
	uint16_t bits;
	char letter;
};

#define KB_STATES_MAX	16

struct kb_header {
	uint8_t word_size;		/* 4 or 8 */
	bool big_endian;
	uint32_t protocol_version;
	uint32_t header_length;
	uint32_t data_store_type;	/* 1 linear, 2 circular */
	uint32_t target_name_ptr;
	const char *target_name;
	uint64_t last_timestamp;
	uint32_t timer_sample_rate;	/* Hz */

	uint32_t max_cores, max_task_infos, max_mmap_layout, max_pmu_counters;
	uint32_t max_string_table_length, num_custom_counters;

	uint64_t timestamp_base, timestamp_multiplier, timestamp_divisor, unix_base_ns;

	uint32_t string_table_length;
	const char *strings;		/* string_table_length bytes and a NUL */

	struct kb_pmu *pmus;		/* max_cores */
	uint32_t nr_tasks;
	struct kb_task *tasks;
	uint32_t nr_maps;
	struct kb_map *maps;
	uint32_t nr_charts;
	struct kb_chart *charts;
	uint32_t nr_series;
	struct kb_series *series;

	uint64_t buffer_length, write_offset, read_offset, total_written;
	uint64_t buffer_start;		/* offset of the record buffer in the file */

	bool extended;			/* kbarman.ext=1: trailing bytes have a meaning */

	/* kbarman.states: task switches have 16 bits of the previous state, not 8, and what
	 * they meant to the kernel, the first that fits; see kb_state_letter(). */
	bool wide_states;
	uint32_t nr_states;
	struct kb_state states[KB_STATES_MAX];
};

struct kb_barman;

/*
 * How counter values of the file are to be taken; events always carry deltas.
 * Cumulative ones are turned into deltas per core and counter; the first value of
 * a counter has none and becomes KB_COUNTER_INVALID.
 */
enum kb_counters {
	KB_COUNTERS_AUTO = 0,	/* deltas if kbarman.ext=1 says that we wrote the file;
				 * else cumulative if the first samples never fall and
				 * mostly rise, counter by counter; else deltas */
	KB_COUNTERS_DELTA,
	KB_COUNTERS_CUMULATIVE,
};

/*
 * Open the capture at @path, "-" for standard input. Memory use does not depend
 * on the size of the record buffer. On error nothing is opened and @err says why;
 * -ENODATA: not a Barman capture; -EBADMSG: one, but its header can't be used.
 * A wrapped ring that comes down a pipe goes to a temporary file (in TMPDIR) first,
 * since its end stands before its beginning.
 */
int kb_barman_open(struct kb_barman **out, const char *path, struct kb_error *err);

/* The same for @size bytes at @data, which must stay until kb_barman_close(). */
int kb_barman_open_memory(struct kb_barman **out, const void *data, size_t size,
			  struct kb_error *err);

void kb_barman_close(struct kb_barman *barman);

/* Before the first record, or right after a rewind. */
void kb_barman_set_counters(struct kb_barman *barman, enum kb_counters how);

/*
 * How much of the capture is in memory at a time: 64 KiB to 32 MiB, 4 MiB unless
 * set; for those who read many captures at once. Before the first record, or right
 * after a rewind.
 */
void kb_barman_set_window(struct kb_barman *barman, size_t bytes);

const struct kb_header *kb_barman_header(const struct kb_barman *barman);

/*
 * The letter of a task's @state, which is a prev_state of the capture's; R: it can run; ? if it
 * is not known, be it KB_STATE_UNKNOWN or a bit that nobody told of.
 */
char kb_state_letter(const struct kb_header *header, int state);

/*
 * The same in the bits of the trace event sched_switch from Linux 4.14 on, for a task that is
 * blocked: one whose state is not known, or which could run, sleeps.
 */
uint32_t kb_state_ftrace(const struct kb_header *header, int state);

/*
 * The value of the string "kbarman.KEY=VALUE" of the header, NULL if there is
 * none. Lives as long as the reader.
 */
const char *kb_barman_fact(const struct kb_barman *barman, const char *key);

/*
 * The next record in the order of the buffer. Returns 1 and fills @event; 0 at the
 * end. Blocks without a record are passed over, and so are damaged records: all
 * that is whole comes first. Then, if anything in the record buffer was damaged,
 * one call returns a negative errno with the first such thing in @err, and calls
 * behind that return 0.
 */
int kb_barman_next(struct kb_barman *barman, struct kb_event *event, struct kb_error *err);

/*
 * Start again with the first record. -ESPIPE: the capture comes down a pipe and
 * its beginning is gone; kb_barman_keep() before the first kb_barman_next() puts
 * it into a temporary file (in TMPDIR), so that it stays.
 */
int kb_barman_rewind(struct kb_barman *barman);
int kb_barman_keep(struct kb_barman *barman, struct kb_error *err);

/*
 * floor((timestamp - timestamp_base) * multiplier / divisor), exact and signed;
 * saturates at the limits of int64_t. The fraction is the header's, or the better one
 * that the facts kbarman.raw_base and kbarman.raw_end make, see kbarman-formats(5).
 */
int64_t kb_barman_ns(const struct kb_barman *barman, uint64_t timestamp);

/*
 * What is wrong with the capture although it could be read: number of findings,
 * and the first of them (NULL if none). Complete after kb_barman_next() gave 0.
 */
unsigned int kb_barman_damage(const struct kb_barman *barman, const struct kb_error **first);

/* The finding with that index; NULL behind the last one, and from the 17th on. */
const struct kb_error *kb_barman_finding(const struct kb_barman *barman, unsigned int index);

/* The sums of a whole capture. */
struct kb_validation {
	uint64_t records;		/* all of these together */
	uint64_t samples, task_switches, custom_counters, annotations, halts, unknown;
	uint64_t backwards;		/* records older than the one before of their core;
					 * the format does not forbid that */
	uint64_t checksum;		/* sum of kb_event_checksum() of all records */
};

/*
 * Check all records, much faster than kb_barman_next() would give them: from the
 * first one on, wherever the reader is, and stricter: a value that the format does
 * not list is a finding as well. Returns what kb_barman_next() would at the end.
 * The reader is at the end behind it.
 */
int kb_barman_validate(struct kb_barman *barman, struct kb_validation *sum, struct kb_error *err);

/*
 * For a capture whose recording was cut off: the recorder killed, the disk full, the
 * power gone. From here on the reader takes all blocks that are whole, also those that
 * the header does not tell of yet, and ends in front of what is not, without an error.
 * The reader is at the first record behind it, as after a rewind; what comes down a pipe
 * goes to a temporary file first. Fills @salvage: bytes of the record buffer.
 */
struct kb_salvage {
	uint64_t told;			/* in whole blocks that the header tells of */
	uint64_t untold;		/* in whole blocks behind those */
	uint64_t dropped;		/* in the file, and not in a whole block */
	uint64_t missing;		/* that the header tells of and the file has not */
};

int kb_barman_salvage(struct kb_barman *barman, struct kb_salvage *salvage, struct kb_error *err);

/*
 * A number for an event's content, the same in all four layouts. A sum over many
 * tells whether two captures have the same records, in whatever order.
 */
uint64_t kb_event_checksum(const struct kb_event *event);

/*
 * Write a capture: create, tables and events in any order, finish.
 *
 * Until kb_barman_writer_finish() the file has a header with room for the given
 * maximum of rows and data behind it, and is a valid capture at any moment after
 * a kb_barman_writer_sync(). Finish on a regular file syncs the data and then
 * writes the final header. Rows and strings are copied.
 *
 * Functions return 0 or a negative errno. What can't be taken is left out and
 * concerns nothing else: -EINVAL (it contradicts the layout), -ERANGE (an address
 * of more than 32 bits in a 32-bit capture), -ENOSPC (its table, or a buffer of
 * given length, is full), -E2BIG (a record of more than 8 MiB, or than the ring),
 * -ESPIPE (a row behind the header in a pipe). An error of the file itself is kept:
 * all later calls return it.
 */
struct kb_barman_writer;

struct kb_barman_layout {
	uint8_t word_size;		/* 4 or 8; 0 = 8 */
	bool big_endian;
	bool circular;			/* a circular store of buffer_length, which is
					 * kept in memory up to the end */
	uint64_t buffer_length;		/* 0 for linear: as long as the data */
	uint32_t max_cores;
	uint32_t max_task_infos;	/* 0: a capture without tasks */
	uint32_t max_mmap_layout;
	uint32_t max_pmu_counters;
	uint32_t max_string_table_length; /* rounded up to a multiple of 4 */
	uint32_t max_custom_charts, max_custom_series;	/* both 0, or both not */
	bool spare_series;		/* no record means a series that is not set; what is
					 * compacted has only those that are */
};

/*
 * @fd is written from its current position on and stays the caller's; it is empty
 * from there on. If it is no regular file (a pipe) or is open with O_APPEND,
 * everything but the records must be set before the first event, and offsets in
 * the header say how far the data may go, not how far it went: buffer_length and
 * write_offset are 0x7ffffffffffffff0, total_written is 0, and the reader takes
 * what comes up to the end.
 */
int kb_barman_writer_create(struct kb_barman_writer **out, int fd,
			    const struct kb_barman_layout *layout, struct kb_error *err);
void kb_barman_writer_destroy(struct kb_barman_writer *writer);

/*
 * The offset of @string in the table, added if it is new; negative errno if full.
 * Set the header first: readers expect the target's name to be the first string.
 */
int64_t kb_barman_writer_string(struct kb_barman_writer *writer, const char *string);

/* target name, clock, sample rate, last_timestamp: taken from @header. */
int kb_barman_writer_set_header(struct kb_barman_writer *writer, const struct kb_header *header);
/* Rows: `name`, `image` and so on count, the *_ptr fields are ignored. */
int kb_barman_writer_pmu(struct kb_barman_writer *writer, uint32_t core, const struct kb_pmu *pmu);
int kb_barman_writer_task(struct kb_barman_writer *writer, const struct kb_task *task);
int kb_barman_writer_map(struct kb_barman_writer *writer, const struct kb_map *map);
int kb_barman_writer_chart(struct kb_barman_writer *writer, const struct kb_chart *chart);
int kb_barman_writer_series(struct kb_barman_writer *writer, const struct kb_series *series);
/*
 * The string "kbarman.KEY=VALUE". Only behind the fact ext=1 do records carry
 * their prev_state, idle_state and chain, and only behind the fact states more of prev_state
 * than its lowest byte.
 */
int kb_barman_writer_fact(struct kb_barman_writer *writer, const char *key, const char *value);

/*
 * One record. Counters of a sample: as many as the core's PMU entry has. An
 * annotation gets a NUL behind its text unless data_length equals text_length; an
 * unknown record must come from a capture of the writer's own layout.
 */
int kb_barman_writer_event(struct kb_barman_writer *writer, const struct kb_event *event);

/*
 * One record as it stands in a capture of the writer's own layout: @length bytes
 * behind the length word, a multiple of the word size. The fast way of `record`.
 */
int kb_barman_writer_record(struct kb_barman_writer *writer, const void *record, size_t length);

/* Everything given so far to the file: data first, then the header. */
int kb_barman_writer_sync(struct kb_barman_writer *writer);

/*
 * Write what is left and the final header. With @compact a regular file is left
 * without the unused rows: same content, smaller; if the file system can't take
 * them out and there are more than 64 MiB of data, or @fd can't be read, they stay
 * as a hole. Fills @err with the first error.
 */
int kb_barman_writer_finish(struct kb_barman_writer *writer, bool compact, struct kb_error *err);

/*
 * After kb_barman_writer_finish() without @compact: the same capture, linear and on
 * a regular file opened for reading too, without its unused rows, to @fd, an empty
 * regular file. The first file stays as it is, so that a capture is there whatever
 * happens meanwhile. -EFBIG: there are so many data that the rows are not worth it.
 */
int kb_barman_writer_compact(struct kb_barman_writer *writer, int fd, struct kb_error *err);

#ifdef __cplusplus
}
#endif

#endif
