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

enum kb_html_source { KB_HTML_HANDLER, KB_HTML_WAKEUP };

#define KB_HTML_EVENT_BYTES	128U	/* longest event without the text of a mark */
#define KB_HTML_TEXT		1024U	/* bytes of a mark */

/* @last: the previous time of its kind and CPU. */
static inline uint8_t *kb_html_put_time(uint8_t *at, int64_t *last, int64_t time)
{
	uint64_t delta = (uint64_t)time - (uint64_t)*last;

	*last = time;
	return kb_proto_put_varint(at, delta << 1 ^ (uint64_t)((int64_t)delta >> 63));
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
