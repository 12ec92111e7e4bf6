/* SPDX-License-Identifier: MIT */
/* A query, for the files that make its tables. */
#ifndef KB_LIB_QUERY_QUERY_INSIDE_H
#define KB_LIB_QUERY_QUERY_INSIDE_H

#include "query/query_file.h"
#include "query/query_tables.h"
#include "query/sqlite.h"

#define QUERY_MEASURES	64U	/* counters that have a column in samples */
#define QUERY_TABLES	32U	/* there are not so many */

/* A counter that has a column of its own. */
struct query_measure {
	char name[64];
	uint32_t ids[KB_QUERY_FILES_MAX];	/* by file; UINT32_MAX: it lacks the counter */
};

struct kb_query {
	struct sqlite3 *db;
	struct query_file *files;
	unsigned int nr_files;
	kb_query_make_lines make_lines;
	void *context;
	uint64_t memory;		/* bytes; 0: not limited */
	volatile sig_atomic_t stop;
	struct query_measure *measures;
	unsigned int nr_measures;

	struct query_told {
		char *declaration;
		const char *name, *what;
		struct kb_query *query;
		const struct query_kind *kind;	/* see module.h */
		const void *table;		/* which one of that kind */
	} tables[QUERY_TABLES];			/* those of kb_query_table() */
	unsigned int nr_tables;
};

/* Add all tables of a kind. 0 or a negative errno and @err. */
int query_add_walks(struct kb_query *query, struct kb_error *err);
int query_add_lists(struct kb_query *query, struct kb_error *err);
int query_add_lines(struct kb_query *query, struct kb_error *err);
int query_add_path(struct kb_query *query, struct kb_error *err);
int query_add_views(struct kb_query *query, struct kb_error *err);
int query_add_functions(struct kb_query *query, struct kb_error *err);

/* The files that SQLite may use: vfs.c. Returns 0 or a number of SQLite's. */
#define QUERY_VFS	"kbarman"
int query_add_vfs(void);

/* What questions may do: see limits.c. */
int query_limit(struct kb_query *query, struct kb_error *err);

#endif
