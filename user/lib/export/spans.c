// SPDX-License-Identifier: MIT
/* One row for each channel that ever had a text, with room for the longest text. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "export/label.h"
#include "export/spans.h"

void kb_spans_init(struct kb_spans *spans)
{
	*spans = (struct kb_spans) { 0 };
	kb_table_init(&spans->rows, sizeof(struct kb_span), 2);
}

static struct kb_span *span_at(const struct kb_spans *spans, uint32_t i)
{
	return kb_table_row(&spans->rows, i);
}

void kb_spans_release(struct kb_spans *spans)
{
	uint32_t i;

	for (i = 0; i < spans->rows.nr; i++)
		free(span_at(spans, i)->text);
	kb_table_release(&spans->rows);
}

/* A row has two texts: the one that ends and the one that begins. */
static int set_text(struct kb_span *span, const struct kb_event *event)
{
	if (!span->text)
		span->text = malloc(2 * KB_SPAN_TEXT);
	if (!span->text)
		return -ENOMEM;
	memcpy(span->text + KB_SPAN_TEXT, span->text, span->length);
	span->length = (uint32_t)kb_label(span->text, KB_SPAN_TEXT, event->annotation.text,
					  event->annotation.text_length, false);
	return 0;
}

int kb_spans_feed(struct kb_spans *spans, const struct kb_event *event, int64_t ns, uint32_t task,
		  struct kb_span *done)
{
	/* Instants have their own row. No channel has its number, as channels have 32 bits. */
	bool instant = event->annotation.type != KB_ANNOTATION_STRING, was_open;
	uint64_t key[2] = { event->task_id, instant ? UINT64_MAX : event->annotation.channel };
	struct kb_span *span;

	if (event->annotation.type == KB_ANNOTATION_CHANNEL ||
	    event->annotation.type == KB_ANNOTATION_GROUP)
		return 0;
	span = kb_table_get(&spans->rows, key);
	if (!span)
		return -ENOMEM;
	*done = *span;
	if (set_text(span, event))
		return -ENOMEM;
	was_open = span->open;
	span->task = task;
	span->start = ns;
	if (instant) {
		*done = *span;
		return 1;
	}
	done->text = span->text + KB_SPAN_TEXT;
	span->open = event->annotation.text_length;
	return was_open;
}

bool kb_spans_end(struct kb_spans *spans, struct kb_span *done)
{
	while (spans->next < spans->rows.nr) {
		*done = *span_at(spans, spans->next++);
		if (done->open)
			return true;
	}
	return false;
}
