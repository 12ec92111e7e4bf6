/* SPDX-License-Identifier: MIT */
/*
 * The tables of schema/list.h as SQL has them: how each is declared, and its columns by number,
 * QUERY_switches_blocked and the like.
 */
#ifndef KB_LIB_QUERY_QUERY_TABLES_H
#define KB_LIB_QUERY_QUERY_TABLES_H

/* The columns that all tables over records begin with. */
#define QUERY_COMMON \
	"file INTEGER, record INTEGER, at_ns INTEGER, cpu INTEGER, tid INTEGER, pid INTEGER, task TEXT"

enum query_common {
	QUERY_FILE, QUERY_RECORD, QUERY_AT, QUERY_CPU, QUERY_TID, QUERY_PID, QUERY_TASK,
	QUERY_COMMONS,		/* the first column of the table's own */
};

struct query_columns {
	const char *name, *what;	/* of the table: a sentence */
	const char *columns;		/* its own, each after a comma: ", next_tid INTEGER" … */
	int nr_columns;			/* with those that all tables over records begin with */
};

/* What has no columns of its own in SQL. */
#define QUERY_IF_NONE(...)
#define QUERY_IF_COMMON(...)
#define QUERY_IF_INTEGER(...)	__VA_ARGS__
#define QUERY_IF_NUMERIC(...)	__VA_ARGS__
#define QUERY_IF_TEXT(...)	__VA_ARGS__

#define TABLE(table, file, about)	\
	extern const struct query_columns query_columns_##table; enum { \
	QUERY_BEFORE_##table = QUERY_COMMONS - 1,
#define COLUMN(table, column, sql, arrow, about)	QUERY_IF_##sql(QUERY_##table##_##column,)
#define MADE(table, column, sql, arrow, how, from, about) QUERY_IF_##sql(QUERY_##table##_##column,)
#define OLD_QUERY(table, old, sql)			QUERY_##table##_##old,
#define END(table)					QUERY_COLUMNS_OF_##table };
#include "query/query_list.h"

#endif
