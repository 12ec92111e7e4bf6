/* SPDX-License-Identifier: MIT */
/* Rows of answers as text, in the forms of SQLite's shell. */
#ifndef KB_CLI_QUERY_PRINT_H
#define KB_CLI_QUERY_PRINT_H

#include <stdbool.h>
#include <stdio.h>

struct sqlite3_stmt;

enum query_mode {
	QUERY_MODE_LIST, QUERY_MODE_CSV, QUERY_MODE_TABS, QUERY_MODE_JSON, QUERY_MODE_LINE,
	QUERY_MODE_COLUMN, QUERY_MODE_TABLE, QUERY_MODE_BOX, QUERY_MODE_MARKDOWN,
};

struct query_format {
	enum query_mode mode;
	bool headers;
	const char *separator;	/* of list; NULL: that of the mode */
	const char *nothing;	/* what is printed for NULL */
};

/* Finds the mode called @word. False: there is none. */
bool query_mode_find(const char *word, enum query_mode *mode);

/* All words, with commas between. */
const char *query_mode_words(void);

/*
 * Prints all rows of @stmt, which was not stepped yet, to @out. Returns what the last step returned,
 * SQL_DONE if all went well; SQL_NOMEM without memory.
 */
int query_print(struct sqlite3_stmt *stmt, const struct query_format *format, FILE *out);

#endif
