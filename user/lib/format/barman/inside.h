/* SPDX-License-Identifier: MIT */
/*
 * format/barman/: captures: the reader (header, cursor, decode), the writer (encode, output) and
 * what checks or mends a file (validate, salvage, cut). It trusts no number of a file.
 *
 * Internals of the reader, shared by its files:
 *
 *	header.c		header and tables -> struct kb_header
 *	cursor.c		the record buffer -> one window of whole blocks
 *	decode.h		a block -> struct kb_event, one template
 *	reader.c		public functions, and one instance for each layout
 *	findings.c		damage that was found
 *	counters.c		cumulative counters -> deltas
 *	barman_clock.[ch]	ticks -> nanoseconds
 *	time.c			the same for the clock of a capture
 *	validate.c		checks the same blocks without making events
 *	barman_checksum.[ch]	what a record adds to the checksum of a capture
 *	salvage.c		finds the whole blocks of a capture that was cut off
 */
#ifndef KB_LIB_FORMAT_BARMAN_INSIDE_H
#define KB_LIB_FORMAT_BARMAN_INSIDE_H

#include <signal.h>

#include <kbarman/barman.h>

#include "base/io/source.h"
#include "format/barman/clock.h"
#include "format/barman/places.h"
#include "format/wire.h"

/* A longer block is skipped. The longest known record is shorter. */
#define BARMAN_BLOCK_MAX	((uint64_t)16 << 20)
#define BARMAN_FINDINGS_MAX	16U		/* findings that are kept; further ones are only
						 * counted */

/* Consecutive blocks in the file: a linear store has one segment, a wrapped ring has two. */
struct barman_segment {
	uint64_t start, end;		/* offsets in the capture */
};

struct barman_series_state {	/* of one hardware counter of one core */
	uint64_t previous;
	bool known;
};

struct kb_barman {
	struct kb_header header;
	struct barman_shape shape;
	struct kb_source source;
	struct barman_clock clock;
	char *strings;			/* header.strings, owned by the reader */
	uint32_t *counter_types;	/* of all cores, one after the other */
	const char **facts;		/* strings that begin with "kbarman." */
	size_t nr_facts;

	/* The shape of records in this capture. */
	bool has_tasks, has_custom;
	int (*next)(struct kb_barman *barman, struct kb_event *event);

	/* The cursor: blocks from `at` to `end`. The last one may be incomplete. */
	const uint8_t *at, *end;
	const uint8_t *window;		/* an address, and its offset in the capture */
	uint64_t window_offset;
	struct barman_segment segments[2];
	unsigned int nr_segments, segment;
	bool open_ended;		/* the data end with the file */
	bool salvaged;			/* segments are from the file, not from the header */
	bool ended;
	const volatile sig_atomic_t *stop;	/* not 0: the walk is to end with -EINTR; NULL: never */

	/* Targets of the pointers in events. */
	uint64_t *counters;
	struct kb_custom_value *custom;
	uint64_t *chain;
	uint64_t stacks;		/* chains behind which there was a stack */
	uint64_t arguments[KB_SYSCALL_ARGUMENTS];	/* of the last system call */

	/* counters.c */
	enum kb_counters how;
	bool decided, cumulative;
	uint64_t probe_end;		/* offset; not 0 while samples are examined */
	uint32_t *counter_index;	/* of a core's first counter in counter_state */
	struct barman_series_state *counter_state;
	uint64_t nr_counters;		/* of all cores */

	/* All findings are counted, some are kept. Findings in records make the end an error. */
	unsigned int nr_findings, nr_header_findings;
	struct kb_error findings[BARMAN_FINDINGS_MAX];
	struct kb_error failure;	/* the first one in the record buffer */
	bool told;
};

/* kb_barman_next() for the first record and at the end of a window. */
int barman_next_window(struct kb_barman *barman, struct kb_event *event, struct kb_error *err);

/* kb_barman_next() inlined, for loops that do little with an event. */
static kb_always_inline int barman_next(struct kb_barman *b, struct kb_event *event,
					struct kb_error *err)
{
	if (kb_likely(b->decided && b->next(b, event) == 1))
		return 1;
	return barman_next_window(b, event, err);
}

/*
 * For records that come from elsewhere than the capture, whose header describes them: decode the
 * block of @bytes at @block, with its length word. 1, or 0: it has no record. The event's pointers
 * hold as usual. The cursor is lost.
 */
int barman_decode_block(struct kb_barman *barman, const void *block, size_t bytes,
			struct kb_event *event);

/* Samples of @core have @nr counters from now on. Returns 0 or -ENOMEM. */
int barman_set_nr_counters(struct kb_barman *barman, uint32_t core, uint32_t nr);

/* Count a finding. The first ones are kept. */
void barman_finding(struct kb_barman *barman, uint64_t offset, const char *format, ...)
	__attribute__((format(printf, 3, 4), cold));

/* Add the finding about a record that can't be decoded. */
void barman_bad_record(struct kb_barman *barman, const uint8_t *record, uint64_t length,
		       uint64_t offset, bool swap) __attribute__((cold));

/* Nothing more can be read, because of @why: a finding, and the result of the call. */
int barman_end_early(struct kb_barman *barman, const struct kb_error *why, struct kb_error *err);

/* At the end: return the first damage of the records, once. */
int barman_tell_end(struct kb_barman *barman, struct kb_error *err);

int barman_header_read(struct kb_barman *barman, struct kb_error *err);
void barman_header_free(struct kb_barman *barman);

/* Parse the value of the fact states. */
void barman_read_states(struct kb_header *header, const char *fact);

/* Use the fraction of the facts raw_base and raw_end, if they agree with the header. */
void barman_clock_measure(struct kb_barman *barman);

/* From now on @ticks take @ns, for who knows better. */
void barman_clock_set(struct kb_barman *barman, uint64_t ns, uint64_t ticks);

/* Find the segments. Call it before the first record and after every rewind. */
void barman_cursor_init(struct kb_barman *barman);

/*
 * Move `at` to the length word of the next block that has a record and is complete before
 * `end`. 1: done; 0: there are no more; negative errno: input/output error.
 */
int barman_cursor_advance(struct kb_barman *barman, struct kb_error *err);

/*
 * Positions grow in the order of reading, also where a ring has wrapped: the number of bytes of the
 * record buffer that are read before the byte at @offset of the capture. UINT64_MAX: it is in none
 * of the data.
 */
uint64_t barman_position(const struct kb_barman *barman, uint64_t offset);

/*
 * Go on with the block at @position, which is one: a record was read there. Deltas of cumulative
 * counters are wrong then. Call it before the first record or after a rewind, when it is decided
 * what counters are.
 */
void barman_go(struct kb_barman *barman, uint64_t position);

/* Before the first record: decide whether the counters are cumulative. */
int barman_counters_decide(struct kb_barman *barman, struct kb_error *err);
void barman_counters_delta(struct kb_barman *barman, uint32_t core, uint64_t *counters,
			   uint32_t n);
void barman_counters_reset(struct kb_barman *barman);

#endif
