/* SPDX-License-Identifier: MIT */
/* Marks of a profile of the Firefox Profiler, and what their types have beside name and times. */
#ifndef KB_LIB_EXPORT_VIEWERS_FIREFOX_MARKS_H
#define KB_LIB_EXPORT_VIEWERS_FIREFOX_MARKS_H

#include "base/text/json.h"
#include "export/task_table.h"

enum kb_firefox_kind { KB_FIREFOX_MARK, KB_FIREFOX_WAKEUP, KB_FIREFOX_HANDLER };

struct kb_firefox_mark {
	enum kb_firefox_kind kind;
	uint32_t task, channel;	/* numbers; the channel of a mark of a program */
	uint32_t about;		/* of a wakeup: the waker's number; of a handler: the interrupt's */
	uint8_t context;	/* of a wakeup: what woke */
	const char *what;	/* of a handler: what kind */
	bool instant;
	int64_t start, end;	/* ns */
	char *text;
	uint32_t length;
};

/* For qsort(3): by task and time. */
int kb_firefox_mark_order(const void *left, const void *right);

/* Write the data of @mark, whose tasks have numbers of @tasks. */
void kb_firefox_mark_data(struct kb_json *json, const struct kb_task_table *tasks,
			  const struct kb_firefox_mark *mark);

/* Write the schemas of all types of marks: the member markerSchema. */
void kb_firefox_mark_schemas(struct kb_json *json);

#endif
