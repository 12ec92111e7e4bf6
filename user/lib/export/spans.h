/* SPDX-License-Identifier: MIT */
/*
 * Marks with a beginning and an end. A text lasts until the next text of its task and channel,
 * an empty text there, or the end of the capture. A bookmark is an instant. Names of channels
 * are not marks.
 */
#ifndef KB_LIB_EXPORT_SPANS_H
#define KB_LIB_EXPORT_SPANS_H

#include <stdbool.h>
#include <stdint.h>

#include <kbarman/event.h>

#include "base/table.h"

#define KB_SPAN_TEXT	1024	/* longest text, bytes */

struct kb_span {
	uint64_t key[2];	/* task id, channel */
	bool open;
	uint32_t task;		/* the caller's number of the task */
	int64_t start;		/* ns */
	uint32_t length;
	char *text;		/* valid UTF-8 */
};

struct kb_spans {
	struct kb_table rows;
	uint32_t next;		/* for kb_spans_end() */
};

void kb_spans_init(struct kb_spans *spans);
void kb_spans_release(struct kb_spans *spans);

/*
 * Add the annotation @event at @ns by @task. Returns 1 and fills @done if it ends a span, or is
 * an instant, whose start is its end; 0 if nothing ends; -ENOMEM. @done holds until the next
 * call.
 */
int kb_spans_feed(struct kb_spans *spans, const struct kb_event *event, int64_t ns, uint32_t task,
		  struct kb_span *done);

/* Call it after the last event until it returns false: gives the spans that are still open. */
bool kb_spans_end(struct kb_spans *spans, struct kb_span *done);

#endif
