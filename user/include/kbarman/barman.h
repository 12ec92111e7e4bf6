/* SPDX-License-Identifier: MIT */
/*
 * Barman captures: read and write. The reader takes 32-bit and 64-bit captures in both byte
 * orders, linear and circular, of protocol version 1 to 3. The writer uses 64 bits and this
 * machine's byte order by default. The source of the format is Arm's text "Barman V2 Protocol";
 * kbarman-formats(5) describes what that text leaves open.
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
	uint64_t timestamp;		/* ticks; the row is valid from then on */
	uint32_t task_id;
	uint32_t name_ptr;
	const char *name;		/* NULL: name_ptr is outside the table */
	uint32_t tgid;			/* the thread group; read: task_id if it is not known */
	uint64_t exited;		/* ticks; 0 = it lives, or that is not known */
};

struct kb_map {
	uint64_t timestamp;		/* ticks; 0 where the capture has no tasks */
	uint32_t task_id;		/* 0 = the kernel: the row is valid for every task */
	uint32_t image_ptr;
	uint64_t base_address;
	uint64_t length;
	uint64_t image_offset;		/* offset of base_address in the file */
	const char *image;
	struct kb_text file;		/* identifies the file among all files with this path:
					 * "MAJOR:MINOR:INODE:SIZE:MTIME"; empty if the capture
					 * does not say; see kbarman-formats(5) */
};

struct kb_pmu {
	uint64_t configuration_timestamp;
	uint64_t mpidr;
	uint32_t midr;
	uint32_t cluster_id;
	uint32_t num_counters;
	uint32_t *counter_types;	/* num_counters */
};

/*
 * Values of the tables of charts and series. Source: "Barman V2 Protocol", custom charts and
 * custom series. A damaged capture may have other values.
 */
enum kb_composition {
	KB_COMPOSITION_STACKED	= 1,
	KB_COMPOSITION_OVERLAY	= 2,
	KB_COMPOSITION_LOG10	= 3,
};

enum kb_rendering {
	KB_RENDERING_FILLED	= 1,
	KB_RENDERING_LINE	= 2,
	KB_RENDERING_BAR	= 3,
};

enum kb_chart_flags {
	KB_CHART_AVERAGE_SELECTION = 0x01,	/* show averages, not sums, of a selection, */
	KB_CHART_AVERAGE_CORES	= 0x02,		/* and of several cores */
	KB_CHART_PERCENTAGE	= 0x04,
	KB_CHART_PER_CPU	= 0x08,		/* each core has its own values */
};

enum kb_series_class {
	KB_SERIES_DELTA		= 1,	/* the change since the last value */
	KB_SERIES_INCIDENT	= 2,	/* an amount at this moment */
	KB_SERIES_ABSOLUTE	= 3,	/* the level from now on */
};

enum kb_display {
	KB_DISPLAY_ACCUMULATE	= 1,
	KB_DISPLAY_AVERAGE	= 2,
	KB_DISPLAY_HERTZ	= 3,
	KB_DISPLAY_MAXIMUM	= 4,
	KB_DISPLAY_MINIMUM	= 5,
};

enum kb_series_flags {
	KB_SERIES_SAMPLED	= 0x01,	/* samples have values of this series */
};

#define KB_COLOUR_AUTOMATIC	UINT32_MAX	/* the viewer chooses */

struct kb_chart {
	uint32_t name_ptr;
	const char *name;
	uint8_t series_composition;	/* enum kb_composition */
	uint8_t rendering_type;		/* enum kb_rendering */
	uint8_t boolean_flags;		/* enum kb_chart_flags */
};

struct kb_series {
	uint32_t chart_index;
	uint32_t name_ptr, units_ptr, description_ptr;
	const char *name, *units, *description;
	uint32_t colour;		/* 0x00RRGGBB or KB_COLOUR_AUTOMATIC */
	double multiplier;		/* displayed value = value * multiplier */
	uint8_t series_class;		/* enum kb_series_class */
	uint8_t display;		/* enum kb_display */
	uint8_t boolean_flags;		/* enum kb_series_flags */
};

/*
 * One row of the table that gives states of tasks a letter. A task whose state has all of
 * `bits` set is in the state that Linux shows as `letter`: S (sleeps), D (sleeps and can't be
 * interrupted), I (as D, but idle), T (stopped), t (traced), P (parked), X (dead), Z (zombie).
 */
struct kb_state {
	uint16_t bits;
	char letter;			/* enum kb_letter */
};

#define KB_STATES_MAX	16

/* What kb_state_letter() returns. Source: the letters of ps(1) and of Linux. */
enum kb_letter {
	KB_LETTER_RUNNING	= 'R',	/* runs, or could */
	KB_LETTER_SLEEPING	= 'S',
	KB_LETTER_DISK_SLEEP	= 'D',
	KB_LETTER_IDLE		= 'I',
	KB_LETTER_STOPPED	= 'T',
	KB_LETTER_TRACED	= 't',
	KB_LETTER_PARKED	= 'P',
	KB_LETTER_DEAD		= 'X',
	KB_LETTER_ZOMBIE	= 'Z',
	KB_LETTER_UNKNOWN	= '?',
};

/*
 * What kb_state_ftrace() returns: states as the field prev_state of the trace event sched_switch
 * has them since Linux 4.14. Source: TASK_REPORT and TASK_REPORT_MAX of include/linux/sched.h and
 * the format file of the event.
 */
enum kb_ftrace_state {
	KB_FTRACE_RUNNING	= 0x000,
	KB_FTRACE_SLEEPING	= 0x001,
	KB_FTRACE_DISK_SLEEP	= 0x002,
	KB_FTRACE_STOPPED	= 0x004,
	KB_FTRACE_TRACED	= 0x008,
	KB_FTRACE_DEAD		= 0x010,
	KB_FTRACE_ZOMBIE	= 0x020,
	KB_FTRACE_PARKED	= 0x040,
	KB_FTRACE_IDLE		= 0x080,
	KB_FTRACE_PREEMPTED	= 0x100,	/* kb_state_ftrace() never returns it */
};

/* Source: "Barman V2 Protocol", the header. The reader refuses captures of other types. */
enum kb_store_type {
	KB_STORE_LINEAR		= 1,
	KB_STORE_CIRCULAR	= 2,
};

/* A decoded header. Strings and arrays belong to the reader. */
struct kb_header {
	uint8_t word_size;		/* 4 or 8 */
	bool big_endian;
	uint32_t protocol_version;
	uint32_t header_length;
	uint32_t data_store_type;	/* enum kb_store_type */
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

	bool extended;			/* kbarman.ext=1: bytes behind a record are defined */

	/*
	 * The fact kbarman.states: task switches have 16 bits of the previous state instead of
	 * 8. `states` are the meanings of these bits; the first row that matches counts. See
	 * kb_state_letter().
	 */
	bool wide_states;
	uint32_t nr_states;
	struct kb_state states[KB_STATES_MAX];
};

struct kb_barman;

/*
 * How to read the counter values of the file. Events always carry deltas. The reader subtracts
 * cumulative values from each other, for each core and counter; the first value of a counter
 * has no predecessor and becomes KB_COUNTER_INVALID.
 */
enum kb_counters {
	KB_COUNTERS_AUTO = 0,	/* deltas if the capture has the fact kbarman.ext=1, which
				 * kbarman writes. Else the first samples decide for each
				 * counter: cumulative if its values never fall and mostly rise,
				 * else deltas */
	KB_COUNTERS_DELTA,
	KB_COUNTERS_CUMULATIVE,
};

/*
 * Open the capture at @path, "-" for standard input. Memory use does not depend on the size of
 * the record buffer. Returns 0, or a negative errno: then nothing is opened and @err says why.
 * -ENODATA: not a Barman capture; -EBADMSG: a capture whose header can't be used. The end of a
 * wrapped ring stands in front of its beginning; if such a capture comes from a pipe, it is
 * copied to a temporary file (in TMPDIR) first. kb_barman_close() frees the reader.
 */
int kb_barman_open(struct kb_barman **out, const char *path, struct kb_error *err);

/*
 * The same for @size bytes at @data. They stay the caller's and must live until
 * kb_barman_close().
 */
int kb_barman_open_memory(struct kb_barman **out, const void *data, size_t size,
			  struct kb_error *err);

/* Free the reader and all that belongs to it. @barman may be NULL. */
void kb_barman_close(struct kb_barman *barman);

/* How to read counter values. Call it before the first record, or right after a rewind. */
void kb_barman_set_counters(struct kb_barman *barman, enum kb_counters how);

/*
 * How many bytes of the capture are in memory at a time: 64 KiB to 32 MiB; 4 MiB by default.
 * Use it to read many captures at once. Call it before the first record, or right after a
 * rewind.
 */
void kb_barman_set_window(struct kb_barman *barman, size_t bytes);

/* The header. The reader owns it. */
const struct kb_header *kb_barman_header(const struct kb_barman *barman);

/* The flags (enum kb_chart_flags) of the chart of @series; 0 if the capture has no such chart. */
static inline uint8_t kb_series_chart_flags(const struct kb_header *header,
					    const struct kb_series *series)
{
	return series->chart_index < header->nr_charts ?
	       header->charts[series->chart_index].boolean_flags : 0;
}

/* Whether values of @series have to be added up to get a level. */
static inline bool kb_series_adds_up(const struct kb_series *series)
{
	return series->series_class == KB_SERIES_DELTA ||
	       series->series_class == KB_SERIES_INCIDENT;
}

/*
 * The letter (enum kb_letter) of @state, a prev_state of the same capture. ?: the state is
 * KB_STATE_UNKNOWN, or has a bit that the capture does not explain.
 */
char kb_state_letter(const struct kb_header *header, int state);

/*
 * The same state as one of enum kb_ftrace_state. Only for a task that blocked: an unknown state,
 * and a state in which the task could run, become KB_FTRACE_SLEEPING.
 */
uint32_t kb_state_ftrace(const struct kb_header *header, int state);

/*
 * The value of the header's string "kbarman.KEY=VALUE", NULL if there is none. The reader owns
 * it.
 */
const char *kb_barman_fact(const struct kb_barman *barman, const char *key);

/*
 * Read the next record, in the order of the buffer. Returns 1 and fills @event; 0 at the end.
 * Blocks without a record and damaged records are skipped, so all whole records are delivered.
 * If anything in the record buffer was damaged, one call at the end returns a negative errno
 * and the first damage in @err; later calls return 0.
 */
int kb_barman_next(struct kb_barman *barman, struct kb_event *event, struct kb_error *err);

/*
 * Go back to the first record. -ESPIPE: the capture comes from a pipe and its beginning is no
 * longer there. To prevent that, call kb_barman_keep() before the first kb_barman_next(): it
 * copies the capture to a temporary file (in TMPDIR).
 */
int kb_barman_rewind(struct kb_barman *barman);
int kb_barman_keep(struct kb_barman *barman, struct kb_error *err);

/*
 * The time of @timestamp (ticks) in nanoseconds since timestamp_base: floor((timestamp -
 * timestamp_base) * multiplier / divisor), exact and signed. The result saturates at the limits
 * of int64_t. The fraction is the header's, or the more exact one from the facts
 * kbarman.raw_base and kbarman.raw_end; see kbarman-formats(5).
 */
int64_t kb_barman_ns(const struct kb_barman *barman, uint64_t timestamp);

/*
 * What is wrong with a capture that could be read nevertheless. Returns the number of findings
 * and sets @first to the first of them (NULL if none). Complete after kb_barman_next() returned
 * 0.
 */
unsigned int kb_barman_damage(const struct kb_barman *barman, const struct kb_error **first);

/* The finding with that index. NULL behind the last one, and for an index of 16 or more. */
const struct kb_error *kb_barman_finding(const struct kb_barman *barman, unsigned int index);

/* The sums of a whole capture. */
struct kb_validation {
	uint64_t records;		/* all of the following together */
	uint64_t samples, task_switches, custom_counters, annotations, halts, unknown;
	uint64_t backwards;		/* records older than the previous one of their core;
					 * the format allows them */
	uint64_t checksum;		/* sum of kb_event_checksum() of all records */
};

/*
 * Check all records, much faster than kb_barman_next(), and fill @sum. The check starts at the
 * first record, wherever the reader is, and leaves the reader at the end. It is stricter than
 * kb_barman_next(): a value that the format does not list is a finding, too. Returns what
 * kb_barman_next() returns at the end.
 */
int kb_barman_validate(struct kb_barman *barman, struct kb_validation *sum, struct kb_error *err);

/* What there is of a capture that was cut off: numbers of bytes of the record buffer. */
struct kb_salvage {
	uint64_t told;			/* in whole blocks that the header counts */
	uint64_t untold;		/* in whole blocks behind those */
	uint64_t dropped;		/* in the file, but not in a whole block */
	uint64_t missing;		/* counted by the header, but not in the file */
	uint64_t stacks;		/* records, among those of `untold`: nobody has unwound their stacks */
};

/*
 * Prepare to read a capture whose recording was cut off, for example by a kill, a full disk or
 * a power loss. The reader then delivers all whole blocks, also those that the header does not
 * count yet, and stops without an error in front of the first broken one. Afterwards the reader
 * is at the first record, as after a rewind. A capture from a pipe is copied to a temporary
 * file first. Returns 0 and fills @salvage, or a negative errno and @err.
 */
int kb_barman_salvage(struct kb_barman *barman, struct kb_salvage *salvage, struct kb_error *err);

/*
 * Make a capture of the file at @path whose recording was cut off, in place and without a copy: its
 * header tells of all whole blocks that it told of, with @untold also of those behind them, and the
 * file ends there. Nothing is synced. Returns 0 and fills @salvage; -EINVAL: the capture has a
 * ring; or another negative errno and @err.
 */
int kb_barman_cut(const char *path, bool untold, struct kb_salvage *salvage, struct kb_error *err);

/*
 * A number computed from an event's content, the same in all four layouts. Two captures with
 * equal sums over all events have the same records, in whatever order.
 */
uint64_t kb_event_checksum(const struct kb_event *event);

/*
 * Write a capture: create a writer, add tables and events in any order, finish.
 *
 * Before kb_barman_writer_finish() the file has a header with room for the maximum numbers of
 * rows, and the data behind it. The file is a valid capture after each kb_barman_writer_sync().
 * On a regular file finish syncs the data and then writes the final header. Rows and strings
 * are copied.
 *
 * Functions return 0 or a negative errno. A row or record that is refused is left out;
 * everything else stays valid: -EINVAL (it contradicts the layout), -ERANGE (an address of more
 * than 32 bits in a 32-bit capture), -ENOSPC (its table, or a buffer of given length, is full),
 * -E2BIG (a record of more than 8 MiB, or larger than the ring), -ESPIPE (a row for a header
 * that a pipe has already passed on). The writer keeps the first error of the file itself and
 * returns it from all later calls.
 */
struct kb_barman_writer;

/* What the file has room for. All zero behind `size` is the default. */
struct kb_barman_layout {
	size_t size;			/* of this struct, as the caller knows it: sizeof() */
	uint8_t word_size;		/* 4 or 8; 0 = 8 */
	bool big_endian;
	bool circular;			/* buffer_length bytes, which stay in memory until finish */
	uint64_t buffer_length;		/* bytes; 0 for linear: as long as the data */
	uint32_t max_cores;
	uint32_t max_task_infos;	/* 0: a capture without tasks */
	uint32_t max_mmap_layout;
	uint32_t max_pmu_counters;
	uint32_t max_string_table_length; /* rounded up to a multiple of 4 */
	uint32_t max_custom_charts, max_custom_series;	/* both 0, or both not */
	bool spare_series;		/* no record refers to a series that is not set;
					 * compacting drops those series */
};

/*
 * The writer writes to @fd from its current position on and expects no data behind it. @fd
 * stays the caller's. If @fd is not a regular file (a pipe), or is open with O_APPEND, all rows
 * and strings must be set before the first event. The header then has the largest offsets
 * instead of the final ones: buffer_length and write_offset are 0x7ffffffffffffff0,
 * total_written is 0; a reader reads up to the end of the file. kb_barman_writer_destroy() frees
 * the writer, which may be NULL, and does not finish the file.
 */
int kb_barman_writer_create(struct kb_barman_writer **out, int fd,
			    const struct kb_barman_layout *layout, struct kb_error *err);
void kb_barman_writer_destroy(struct kb_barman_writer *writer);

/*
 * Returns the offset of @string in the string table, or a negative errno if the table is full.
 * The string is added if it is new. Set the header first: readers expect the name of the target
 * to be the first string.
 */
int64_t kb_barman_writer_string(struct kb_barman_writer *writer, const char *string);

/* Set the header. Takes from @header: target name, clock, sample rate, last_timestamp. */
int kb_barman_writer_set_header(struct kb_barman_writer *writer, const struct kb_header *header);
/*
 * Add a row. Its strings (`name`, `image`, …) are used, its *_ptr fields are ignored. The thread
 * group and the end of a task become facts of the row; -ENOSPC of a task may mean that the row is
 * there without them.
 */
int kb_barman_writer_pmu(struct kb_barman_writer *writer, uint32_t core, const struct kb_pmu *pmu);
int kb_barman_writer_task(struct kb_barman_writer *writer, const struct kb_task *task);
int kb_barman_writer_map(struct kb_barman_writer *writer, const struct kb_map *map);
int kb_barman_writer_chart(struct kb_barman_writer *writer, const struct kb_chart *chart);
int kb_barman_writer_series(struct kb_barman_writer *writer, const struct kb_series *series);
/*
 * Add the string "kbarman.KEY=VALUE". Add the fact ext=1 before events that have a prev_state,
 * an idle_state, a chain, or of custom_counter a `what`: without it these are not written. Without
 * the fact states only the lowest byte of prev_state is written.
 */
int kb_barman_writer_fact(struct kb_barman_writer *writer, const char *key, const char *value);

/*
 * Write one record. A sample needs as many counters as the core's PMU row has. An annotation
 * gets a NUL behind its text unless data_length equals text_length. An unknown record must come
 * from a capture with the writer's own layout.
 */
int kb_barman_writer_event(struct kb_barman_writer *writer, const struct kb_event *event);

/*
 * Write one record as bytes, faster than kb_barman_writer_event(). The record has the writer's
 * own layout. @length is the number of bytes behind the length word, a multiple of the word
 * size.
 */
int kb_barman_writer_record(struct kb_barman_writer *writer, const void *record, size_t length);

/*
 * Write many such records at once. @blocks is @bytes bytes: each record with its length word in
 * front of it, and no padding. @newest is the greatest of their timestamps.
 */
int kb_barman_writer_blocks(struct kb_barman_writer *writer, const void *blocks, size_t bytes,
			    uint64_t newest);

/* Write everything given so far to the file: the data first, then the header. */
int kb_barman_writer_sync(struct kb_barman_writer *writer);

/*
 * Write the rest and the final header. With @compact the unused rows are removed from a regular
 * file. They stay as a hole if @fd can't be read, or if the file system can't remove ranges and
 * there are more than 64 MiB of data. Fills @err with the first error.
 */
int kb_barman_writer_finish(struct kb_barman_writer *writer, bool compact, struct kb_error *err);

/*
 * Call it after kb_barman_writer_finish() without @compact: write the same capture without its
 * unused rows to @fd, an empty regular file. The first file must be linear, regular and open
 * for reading; it is not changed, so a crash during the copy loses nothing. -EFBIG: the data
 * are so large that removing the rows is not worth the copy.
 */
int kb_barman_writer_compact(struct kb_barman_writer *writer, int fd, struct kb_error *err);

#ifdef __cplusplus
}
#endif

#endif
