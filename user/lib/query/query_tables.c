// SPDX-License-Identifier: MIT
/* See query_tables.h. Names that are kept until 1.0 are hidden columns: SELECT * lacks them. */
#include "query/query_tables.h"

#define TABLE(table, file, about)	\
	const struct query_columns query_columns_##table = { #table, about, ""
#define COLUMN(table, column, sql, arrow, about)	QUERY_IF_##sql(", " #column " " #sql)
#define MADE(table, column, sql, arrow, how, from, about) QUERY_IF_##sql(", " #column " " #sql)
#define OLD_QUERY(table, old, sql)			", " #old " " #sql " HIDDEN"
#define END(table)					, QUERY_COLUMNS_OF_##table };
#include "query/query_list.h"
