/* SPDX-License-Identifier: MIT */
/*
 * export/parquet/: captures of many machines as tables of Parquet in one folder: which tables
 * (tables.h), their rows from analysis/columns/, and the files that rows go to.
 *
 * The tables of `convert --to parquet` and their columns: what they are in the files, and from which
 * column of kbarman/columns.h they come. kbarman-parquet(5) describes them for users.
 */
#ifndef KB_LIB_EXPORT_PARQUET_TABLES_H
#define KB_LIB_EXPORT_PARQUET_TABLES_H

#include <stddef.h>

#include "format/parquet/parquet.h"

#define KB_PARQUET_COLUMNS	18	/* most of a table */

/* How a value becomes one of the file. */
enum kb_parquet_how {
	KB_FROM_NUMBER,		/* a number or a truth value, as it is */
	KB_FROM_TIME,		/* ns of the capture become ns since 1970 */
	KB_FROM_WORD,		/* the word of a number */
	KB_FROM_TEXT,		/* a text, as it is */
	KB_FROM_TASK,		/* the name of a task at the time of the row */
	KB_FROM_PID,		/* its process */
	KB_FROM_STACK,		/* the functions of a call chain */
	KB_FROM_SYMBOL,		/* the innermost function; missing if it has no name */
	KB_FROM_IMAGE,		/* the file that it is in; missing if it is not known */
	KB_FROM_FIRST,		/* the first number of a list */
	KB_FROM_FIRST_EVENT,	/* of a CPU: what that number counts */
	KB_FROM_EVENT,		/* the name of an event, a series or a handler by its number */
	KB_FROM_SERIES,
	KB_FROM_HANDLER,
	KB_FROM_WAIT,		/* how long the task of a switch could have run before it did */
	KB_FROM_START,		/* of the capture, since 1970 */
	KB_FROM_LENGTH,		/* of the capture */
	KB_FROM_RECORDS,	/* their number */
	KB_FROM_CAPTURE,	/* its name */
};

struct kb_parquet_source {
	const char *name;
	enum kb_parquet_type type;
	enum kb_parquet_how how;
	const char *from;	/* the column; NULL: it needs none */
	/* When the value is missing: it is `none` if that is not 0; the column `unless` is false. */
	int64_t none;
	const char *unless;
	bool optional;		/* it may be missing for other reasons */
	bool at_end;		/* a name is that of the end: after the length, the second column */
};

/* The first column of each table is unix_ns, by which rows are sorted. */
struct kb_parquet_table {
	const char *name;
	const char *from;	/* the table of kbarman/columns.h */
	struct kb_parquet_source columns[KB_PARQUET_COLUMNS];
};

extern const struct kb_parquet_table kb_parquet_tables[];
extern const size_t kb_nr_parquet_tables;

/* What the column is in a file. */
struct kb_parquet_column kb_parquet_column_of(const struct kb_parquet_source *source);

#endif
