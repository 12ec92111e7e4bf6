/* SPDX-License-Identifier: MIT */
/*
 * Marks as things with a beginning and an end: a text holds until the next one of its
 * task and channel, an empty one there, or the end of the capture; a bookmark is an
 * instant; the name of a channel is no mark.
 */
#ifndef KB_LIB_EXPORT_SPANS_H
#define KB_LIB_EXPORT_SPANS_H

#include <stdbool.h>
#include <stdint.h>

#include <kbarman/event.h>

#include "table.h"

#define KB_SPAN_TEXT	1024	/* bytes of a text at most */

struct kb_span {
	uint64_t key[2];	/* task id, channel */
	bool open;
	uint32_t task;		/* as the caller calls it */
	int64_t start;		/* ns */
	uint32_t length;
	char *text;		/* valid UTF-8 */
};

struct kb_spans {
	struct kb_table rows;
	uint32_t next;		/* kb_spans_end() */
};

void kb_spans_init(struct kb_spans *spans);
void kb_spans_release(struct kb_spans *spans);

/*
 * The annotation @event at @ns, by @task. Fills @done with what ends there, and returns
 * 1 if anything does: a span, or an instant, which begins where it ends. -ENOMEM. @done
 * holds until the next call.
 */
int kb_spans_feed(struct kb_spans *spans, const struct kb_event *event, int64_t ns, uint32_t task,
		  struct kb_span *done);

/* After the last event, until it returns false: what is still open. */
bool kb_spans_end(struct kb_spans *spans, struct kb_span *done);

#endif
