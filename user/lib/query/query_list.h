/* SPDX-License-Identifier: MIT */
/* schema/list.h for SQL, where it does not matter what Arrow and Parquet have. */
#define LOCAL_TABLE(table, about)			TABLE(table, table, about)
#define QUERY_TABLE(table, about)			TABLE(table, table, about)
#define LOCAL						COLUMN
#define WORDS(table, column, sql, words, about)		COLUMN(table, column, sql, U8, about)
#define LOCAL_WORDS					WORDS
#define QUERY(table, column, sql, about)		COLUMN(table, column, sql, NONE, about)
#define LOCAL_END					END
#define QUERY_END					END
#include "schema/list.h"
