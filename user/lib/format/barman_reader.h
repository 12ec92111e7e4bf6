/* SPDX-License-Identifier: MIT */
/*
 * The reader's insides, shared by its files:
 *
 *	barman_header.c		header and tables -> struct kb_header
 *	barman_cursor.c		the record buffer -> one window of whole blocks
 *	barman_decode.h		a block -> struct kb_event, one template
 *	barman_reader.c		the public face, and one instance a layout
 *	barman_counters.c	cumulative counters -> deltas
 *	barman_clock.[ch]	ticks -> nanoseconds
 *	barman_validate.c	the same blocks checked, without events
 *	barman_salvage.c	how far the blocks of a capture go that was cut off
 */
#ifndef KBARMAN_BARMAN_READER_H
#define KBARMAN_BARMAN_READER_H

#include <kbarman/barman.h>

#include "barman_clock.h"
#include "barman_places.h"
#include "source.h"
#include "wire.h"

/* A longer block is passed over; the longest record we know how to use is below. */
#define BARMAN_BLOCK_MAX	((uint64_t)16 << 20)
#define BARMAN_FINDINGS_MAX	16U		/* kept; others are counted */

/* A run of blocks in the file: a linear store is one, a wrapped ring is two. */
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
	char *strings;			/* header.strings, ours */
	uint32_t *counter_types;	/* of all cores, one behind the other */
	const char **facts;		/* strings that begin with "kbarman." */
	size_t nr_facts;

	/* What a record looks like in this capture. */
	bool has_tasks, has_custom;
	int (*next)(struct kb_barman *barman, struct kb_event *event);

	/* The cursor: blocks from `at` to `end`, the last one perhaps not whole. */
	const uint8_t *at, *end;
	const uint8_t *window;		/* a place in memory, and the offset of it */
	uint64_t window_offset;
	struct barman_segment segments[2];
	unsigned int nr_segments, segment;
	bool open_ended;		/* ends with the file */
	bool salvaged;			/* segments are what is there, not what the header says */
	bool ended;

	/* What events point to. */
	uint64_t *counters;
	struct kb_custom_value *custom;
	uint64_t *chain;

	/* barman_counters.c */
	enum kb_counters how;
	bool decided, cumulative;
	uint64_t probe_end;		/* offset; not 0 while the counters are looked at */
	uint32_t *counter_index;	/* of a core's first counter in counter_state */
	struct barman_series_state *counter_state;
	uint64_t nr_counters;		/* of all cores */

	/* Findings: all are counted, some are kept, records' make the end an error. */
	unsigned int nr_findings, nr_header_findings;
	struct kb_error findings[BARMAN_FINDINGS_MAX];
	struct kb_error failure;	/* the first one in the record buffer */
	bool told;
};

/* kb_barman_next() where the window has no record any more, or the first time. */
int barman_next_window(struct kb_barman *barman, struct kb_event *event, struct kb_error *err);

/* kb_barman_next() for those who do little with an event. */
static kb_always_inline int barman_next(struct kb_barman *b, struct kb_event *event,
					struct kb_error *err)
{
	if (kb_likely(b->decided && b->next(b, event) == 1))
		return 1;
	return barman_next_window(b, event, err);
}

/* Count a finding and keep it if it is one of the first. */
void barman_finding(struct kb_barman *barman, uint64_t offset, const char *format, ...)
	__attribute__((format(printf, 3, 4), cold));

/* The finding about a record that can't be decoded. */
void barman_bad_record(struct kb_barman *barman, const uint8_t *record, uint64_t length,
		       uint64_t offset, bool swap) __attribute__((cold));

/* At the end: what was wrong with the records, once. */
int barman_tell_end(struct kb_barman *barman, struct kb_error *err);

int barman_header_read(struct kb_barman *barman, struct kb_error *err);
void barman_header_free(struct kb_barman *barman);

/* The value of the fact states. */
void barman_read_states(struct kb_header *header, const char *fact);

/* Take the fraction from the facts raw_base and raw_end, if they go with the header's. */
void barman_clock_measure(struct kb_barman *barman);

/* Lay the segments out; before the first record and after every rewind. */
void barman_cursor_init(struct kb_barman *barman);

/*
 * Make `at` the length word of a record's block that lies whole before `end`.
 * 1: done; 0: there is none any more; negative errno: input/output error.
 */
int barman_cursor_advance(struct kb_barman *barman, struct kb_error *err);

/* Before the first record: are the counters cumulative? */
int barman_counters_decide(struct kb_barman *barman, struct kb_error *err);
void barman_counters_delta(struct kb_barman *barman, uint32_t core, uint64_t *counters,
			   uint32_t n);
void barman_counters_reset(struct kb_barman *barman);

#endif
