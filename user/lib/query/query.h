/* SPDX-License-Identifier: MIT */
/*
 * query/: captures as virtual tables of SQLite. walks.h and query_walk.h make tables of records,
 * lists.c of the header, lines.c of reports; places.h is where reading may begin. limits.c and
 * vfs.c say what a question may do.
 *
 * Captures as tables of SQLite: nothing is imported, a table reads the captures while a question is
 * answered. user/man/kbarman-query.1 has the tables. The database itself is empty and in memory.
 */
#ifndef KB_LIB_QUERY_QUERY_H
#define KB_LIB_QUERY_QUERY_H

#include "query/make_lines.h"

struct sqlite3;
struct kb_query;

struct kb_query_options {
	const char *const *files;	/* paths; they live as long as the query */
	const char *const *names;	/* for people; NULL: the paths */
	unsigned int nr_files;
	const struct kb_symbol_options *symbols;	/* NULL: the default */
	kb_query_make_lines make_lines;	/* NULL: there are no tables report_KIND */
	void *context;
	uint64_t memory;		/* bytes that SQLite may use; 0: any number */
};

/*
 * Open the captures. -ENOSYS: SQLite is not installed. Other errors are those of kb_trace_open().
 * kb_query_close() frees @out; all statements must be finalized before it.
 */
int kb_query_open(struct kb_query **out, const struct kb_query_options *options,
		  struct kb_error *err);
void kb_query_close(struct kb_query *query);

/* The database, for the functions of query/sqlite.h. */
struct sqlite3 *kb_query_db(const struct kb_query *query);

/* The question that runs now ends with an error. Context: any, also a signal handler. */
void kb_query_interrupt(struct kb_query *query);

/* Call it before each question: an interrupt from before does not count. */
void kb_query_ready(struct kb_query *query);

/* The first damage that reading has met in file number @i; NULL: none so far, or no such file. */
const struct kb_error *kb_query_damage(const struct kb_query *query, unsigned int i);

/* Calls @say for each image whose names are missing: see kb_symbolizer_complaints(). */
void kb_query_complaints(const struct kb_query *query,
			 void (*say)(void *context, const char *sentence), void *context);

/*
 * Table number @i: its name, its declaration "CREATE TABLE …", and a sentence that says what it has.
 * False: there are no more. The strings live as long as the query.
 */
struct kb_query_table {
	const char *name, *declaration, *what;
};

bool kb_query_table(const struct kb_query *query, unsigned int i, struct kb_query_table *table);

#endif
