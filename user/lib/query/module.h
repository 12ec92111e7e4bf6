/* SPDX-License-Identifier: MIT */
/*
 * What all tables of a query are to SQLite: each has rows of every file of the query, one file after
 * the other. A kind of tables (over records, over headers, of lines, of paths) says how it finds them.
 */
#ifndef KB_LIB_QUERY_MODULE_H
#define KB_LIB_QUERY_MODULE_H

#include "query/query_inside.h"

struct query_vtab {
	struct sql_vtab base;		/* the first member */
	const struct query_told *told;
};

struct query_cursor {
	struct sql_cursor base;		/* the first member; its vtab is a struct query_vtab */
	unsigned int file;
	bool eof;
	uint64_t row;			/* for kinds that count their rows */
	struct kb_error err;		/* of the last call, if it failed */
};

struct query_kind {
	size_t cursor_bytes;		/* of what begins with a struct query_cursor */
	/*
	 * Take what is asked for. 0: the rows begin in cursor->file, which is the first one unless it
	 * is set here; 1: they go on where the cursor is; or a negative errno and @err. NULL: all.
	 */
	int (*ask)(struct query_cursor *cursor, const char *plan, int argc,
		   struct sqlite3_value **argv, struct kb_error *err);
	/* Stand before the first row of cursor->file. 0, or a negative errno and @err. */
	int (*begin)(struct query_cursor *cursor, struct kb_error *err);
	/* Go to the next row of that file. 1, 0: there is none, or a negative errno and @err. */
	int (*step)(struct query_cursor *cursor, struct kb_error *err);
	void (*end)(struct query_cursor *cursor);	/* NULL: nothing is to be given back */
	struct sql_module module;	/* QUERY_MODULE(best_index, column, rowid) */
};

#define QUERY_MODULE(...)	query_module(query_, __VA_ARGS__)
#define query_module(front, plan, put, id)							\
{												\
	.connect = front##connect, .best_index = plan, .disconnect = front##disconnect,	\
	.open = front##open, .close = front##close, .filter = front##filter,			\
	.next = front##next, .eof = front##eof, .column = put, .rowid = id,			\
}

int query_connect(struct sqlite3 *db, void *aux, int argc, const char *const *argv,
		  struct sql_vtab **out, char **message);
int query_disconnect(struct sql_vtab *vtab);
int query_open(struct sql_vtab *vtab, struct sql_cursor **out);
int query_close(struct sql_cursor *base);
int query_filter(struct sql_cursor *base, int number, const char *plan, int argc,
		 struct sqlite3_value **argv);
int query_next(struct sql_cursor *base);
int query_eof(struct sql_cursor *base);

/* The number of a row by cursor->file and cursor->row. */
int query_rowid(struct sql_cursor *base, long long *id);

static inline const struct query_told *query_told_of(const struct query_cursor *cursor)
{
	return ((const struct query_vtab *)cursor->base.vtab)->told;
}

static inline struct query_file *query_file_of(const struct query_cursor *cursor)
{
	return &query_told_of(cursor)->query->files[cursor->file];
}

/*
 * Make table @name of a kind, with these columns; @table is what the kind calls it. Returns 0 or a
 * negative errno and @err.
 */
int query_add_table(struct kb_query *query, const struct query_kind *kind, const void *table,
		    const char *name, const char *columns, const char *what, struct kb_error *err);

#endif
