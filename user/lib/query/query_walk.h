/* SPDX-License-Identifier: MIT */
/*
 * The tables whose rows are made while records are read, and a walk over the rows of one of them. A
 * record has no row, one or several. All these tables begin with the same columns.
 */
#ifndef KB_LIB_QUERY_QUERY_WALK_H
#define KB_LIB_QUERY_QUERY_WALK_H

#include "query/query_file.h"
#include "query/query_tables.h"

struct sqlite3_context;
struct query_walk;

struct query_table {
	const struct query_columns *is;
	unsigned int types;	/* bits of enum kb_event_type: records that have rows */
	bool follows;		/* needs what the records before say: `running`, slices, ns */
	bool seeks;		/* and nothing else of them: the walk may begin anywhere */
	bool readings;		/* … unless samples without a PC carry their counts to others */
	bool begins;		/* at_ns is when a row began, which is before its record */
	bool measures;		/* a column for each counter follows */

	size_t state_bytes;	/* of walk->state; zeros, before begin() */

	/* All but column() may be NULL. begin() returns 0 or -errno; end() is called in either case. */
	int (*begin)(struct query_walk *walk, struct kb_error *err);
	void (*end)(struct query_walk *walk);
	/* The number of rows of the record, or a negative errno. NULL: one. */
	int (*rows)(struct query_walk *walk);
	/* The same behind the last record, until it returns 0. */
	int (*rest)(struct query_walk *walk);
	/* Fill walk->row for walk->number. NULL: it is that of the record. */
	void (*place)(struct query_walk *walk);
	/* Give the value of column @i, which counts from QUERY_COMMONS on. */
	void (*column)(struct query_walk *walk, struct sqlite3_context *context, int i);
};

/* Which rows are wanted. Those that are not wanted may come all the same: SQLite looks again. */
struct query_bounds {
	bool nothing;
	bool any;		/* one of the following is set */
	bool has_file, has_record, has_core, has_task;
	unsigned int file;
	uint64_t record;
	uint32_t core, task_id;
	int64_t from, until;	/* at_ns; INT64_MIN and INT64_MAX: any */
};

/* The common columns of a row. */
struct query_row {
	uint64_t ticks;		/* for names */
	int64_t at;		/* ns */
	uint32_t core, task_id;
	bool has_task;
};

struct query_walk {
	const struct query_table *table;
	struct query_file *file;
	struct kb_trace *trace;
	const struct kb_event *event;	/* the current record */
	struct query_bounds bounds;
	uint32_t nr_rows, number;	/* of the record; the current one */
	struct query_row row;
	uint64_t stop;			/* position behind which no row is wanted */
	uint64_t steps, rests;		/* records that were read; calls of rest() */
	bool behind;			/* behind the last record, or the last one that is wanted */
	bool ended;			/* no row that is wanted ends with a record behind the current one */
	bool again;			/* the current record was read, and its rows were not */
	void *state;
};

/* Begin to read @file. Returns 0 or a negative errno and @err. */
int query_walk_begin(struct query_walk *walk, const struct query_table *table,
		     struct query_file *file, const struct query_bounds *bounds,
		     struct kb_error *err);
void query_walk_end(struct query_walk *walk);

/*
 * The same for a walk that has looked for a record and is to look for another one, which @bounds
 * has: as in a join, where these come in order. False: begin again.
 */
bool query_walk_resume(struct query_walk *walk, const struct query_bounds *bounds);

/* Go to the next row. 1; 0: there are no more; -EINTR, -ENOMEM. */
int query_walk_next(struct query_walk *walk, struct kb_error *err);

/* The time of the record, ns. */
int64_t query_walk_ns(const struct query_walk *walk);

/* The value of a common column. */
void query_walk_common(struct query_walk *walk, struct sqlite3_context *context, int column);

/* A number that no other row of the table has. */
long long query_walk_rowid(const struct query_walk *walk);

#endif
