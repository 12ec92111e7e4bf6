/* SPDX-License-Identifier: MIT */
/* Makes rows of records: what kbarman/columns.h has of each of them. */
#ifndef KB_LIB_ANALYSIS_COLUMNS_FILL_H
#define KB_LIB_ANALYSIS_COLUMNS_FILL_H

#include <kbarman/names.h>

#include "analysis/columns/part.h"
#include "analysis/time/handlers.h"
#include "base/table.h"

#define KB_STATE_WORDS	256U

/* Gets each record after its rows are in the part. Returns 0 or a negative errno. */
typedef int (*kb_columns_watcher)(void *context, const struct kb_walk *walk);

/* What reads a capture into parts. */
struct kb_columns {
	struct kb_trace *trace;
	kb_columns_wanted wanted;
	struct kb_columns_part *part;	/* the one that is filled */
	bool begun, ended;
	int result;			/* of the last step, once it ended */
	struct kb_error damage;
	struct kb_names *names;		/* if counters, calls or objects are wanted */
	struct kb_handlers handlers;	/* begun if wanted */
	kb_columns_watcher watch;	/* NULL: nobody */
	void *watch_context;
	struct kb_table frames;		/* of each row: its key; its number is that of the frame */
	struct kb_table handler_names;	/* of handlers: the same */
	uint8_t state_words[KB_STATE_WORDS];	/* of each state: 1 + the number of its word;
					 * 0: not asked for yet */
};

/* Whether somebody wants that column. */
#define WANTED_COLUMN(columns, table, column) \
	((columns)->wanted[KB_TABLE_##table] >> KB_AT_##table##_##column & 1)

/* One that the capture's names are for. */
#define WANTED_OBJECT(columns, table)							\
	(WANTED_COLUMN(columns, table, call) || WANTED_COLUMN(columns, table, object_id) ||	\
	 WANTED_COLUMN(columns, table, object_name))

/* From the next record on, call @watch. For who needs more of records than their rows. */
void kb_columns_watch(struct kb_columns *columns, kb_columns_watcher watch, void *context);

/* Add the rows of the record of @walk to the part. Returns 0 or a negative errno. */
int kb_columns_fill(struct kb_columns *columns, const struct kb_walk *walk);

/* Add the row of @slice, if it is wanted. */
void kb_columns_fill_slice(struct kb_columns *columns, const struct kb_slice *slice);

#endif
