/* SPDX-License-Identifier: MIT */
/* The kinds of events in the page; html.c describes their fields. */
#ifndef KB_LIB_EXPORT_HTML_KINDS_H
#define KB_LIB_EXPORT_HTML_KINDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/protobuf.h"

enum kb_html_kind {
	KB_HTML_RUN,
	KB_HTML_IDLE,
	KB_HTML_LOST,
	KB_HTML_SAMPLE,
	KB_HTML_COUNTER,
	KB_HTML_SERIES,
	KB_HTML_MARK,
	KB_HTML_SOURCE,
	KB_HTML_EVENTS,			/* number of the kinds above */

	/* In a thinned page only: */
	KB_HTML_CELL = KB_HTML_EVENTS,
	KB_HTML_CROSSING,
	KB_HTML_KINDS,
};

/*
 * The fields of events. A piece of a thinned page has those of one column together, because they are
 * alike and so take less room when they are packed.
 */
enum kb_html_column {
	KB_HTML_TAG,
	KB_HTML_SLICE_GAP, KB_HTML_SLICE_LENGTH, KB_HTML_RUN_TASK, KB_HTML_IDLE_STATE,
	KB_HTML_LOST_RECORDS,
	KB_HTML_SAMPLE_TIME, KB_HTML_SAMPLE_TASK, KB_HTML_SAMPLE_NODE, KB_HTML_SAMPLE_WEIGHT,
	KB_HTML_COUNTER_TIME, KB_HTML_COUNTER_ID, KB_HTML_COUNTER_VALUE,
	KB_HTML_SERIES_TIME, KB_HTML_SERIES_ID, KB_HTML_SERIES_VALUE,
	KB_HTML_SOURCE_TIME, KB_HTML_SOURCE_WHICH, KB_HTML_SOURCE_LENGTH,
	KB_HTML_HANDLER_TASK, KB_HTML_HANDLER_NUMBER, KB_HTML_HANDLER_DEPTH,
	KB_HTML_WAKEUP_WAKER, KB_HTML_WAKEUP_WOKEN, KB_HTML_WAKEUP_CPU, KB_HTML_WAKEUP_CONTEXT,
	KB_HTML_MARK_FIELD,		/* not in a piece */
	KB_HTML_COLUMNS = KB_HTML_MARK_FIELD,
};

enum kb_html_source { KB_HTML_HANDLER, KB_HTML_WAKEUP };

#define KB_HTML_VARINT		10U	/* bytes of the longest number */
#define KB_HTML_EVENT_BYTES	128U	/* longest event without the text of a mark */
#define KB_HTML_TEXT		1024U	/* bytes of a mark */

/* The number for @time; @last: the previous time of its kind and CPU. */
static inline uint64_t kb_html_time(int64_t *last, int64_t time)
{
	uint64_t delta = (uint64_t)time - (uint64_t)*last;

	*last = time;
	return delta << 1 ^ (uint64_t)((int64_t)delta >> 63);
}

/* What is in the page, with the numbers that it has there. */

struct kb_html_slice {
	enum kb_html_kind kind;		/* RUN, IDLE or LOST */
	uint32_t cpu;
	int64_t start, end;
	uint64_t what;			/* as in the page */
};

struct kb_html_sample {
	uint32_t cpu, task, node;
	int64_t ns;
	uint64_t weight;		/* as in the page: + 1, 0 = none */
	bool kernel;
};

struct kb_html_value {
	enum kb_html_kind kind;		/* COUNTER or SERIES */
	uint32_t cpu, id;
	int64_t ns;
	uint64_t value;
	bool adds_up;
};

struct kb_html_handler {
	uint32_t cpu, task, number, depth;
	int64_t start, end;
};

struct kb_html_wakeup {
	uint32_t cpu, waker, woken, to_cpu, context;
	int64_t from, to;
};

struct kb_html_mark {
	uint32_t cpu, task, type, channel, colour;
	int64_t ns;
	const char *text;
	size_t length;			/* at most KB_HTML_TEXT */
};

#endif
