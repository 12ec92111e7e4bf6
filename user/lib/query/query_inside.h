/* SPDX-License-Identifier: MIT */
/* A query, for the files that make its tables. */
#ifndef KB_LIB_QUERY_QUERY_INSIDE_H
#define KB_LIB_QUERY_QUERY_INSIDE_H

#include "query/query_file.h"
#include "query/query_tables.h"
#include "query/sqlite.h"

#define QUERY_MEASURES	64U	/* counters that have a column in samples */

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

	void *aux, *list_aux, *lines_aux;			/* what connect() of the tables gets */
	struct query_told {
		char *declaration;
		const char *name, *what;
	} *tables;				/* those of kb_query_table() */
	unsigned int nr_tables;
	uint32_t max_tables;
};

/*
 * Make table @name with these columns. @aux is what connect() gets. Returns 0 or a negative errno
 * and @err.
 */
int query_add_module(struct kb_query *query, const char *name, const char *columns,
		     const char *what, const struct sql_module *module, void *aux,
		     struct kb_error *err);

/* The declaration of @name, as query_add_module() had it. NULL: there is none. */
const char *query_declaration(const struct kb_query *query, const char *name);

/*
 * For connect(): declare table @name, and make what SQLite has of it: @size bytes of 0, which begin
 * with a struct sql_vtab and which query_disconnect() frees. Returns a number of SQLite's.
 */
int query_connect(const struct kb_query *query, struct sqlite3 *db, const char *name, size_t size,
		  struct sql_vtab **out);
int query_disconnect(struct sql_vtab *vtab);

/* Give SQLite an error with the text of @err. Returns what the method of the table returns. */
int query_say(struct sql_vtab *vtab, const struct kb_error *err);

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
