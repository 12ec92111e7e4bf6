/* SPDX-License-Identifier: MIT */
/*
 * What kbarman/columns.h has of schema/list.h, for whoever includes this file with macros of
 * their own; those that are missing are empty, and none is left behind:
 *
 *	ARROW_TABLE(table, about)			begins a table
 *	ARROW_COLUMN(table, column, type, about)	a column of it
 *	ARROW_WORDS(table, column, words, about)	a column with numbers of words
 *	OLD(table, old, column)				another name of a column, until 1.0
 *	ARROW_END(table)				ends it
 *
 * This file is included more than once.
 */
#ifndef ARROW_TABLE
#define ARROW_TABLE(table, about)
#endif
#ifndef ARROW_COLUMN
#define ARROW_COLUMN(table, column, type, about)
#endif
#ifndef ARROW_WORDS
#define ARROW_WORDS(table, column, words, about)
#endif
#ifndef ARROW_END
#define ARROW_END(table)
#endif

/* A column of type NONE is left out. */
#define ARROW_NONE(...)
#define ARROW_BOOL(...)		ARROW_COLUMN(__VA_ARGS__)
#define ARROW_U32(...)		ARROW_COLUMN(__VA_ARGS__)
#define ARROW_I32(...)		ARROW_COLUMN(__VA_ARGS__)
#define ARROW_U64(...)		ARROW_COLUMN(__VA_ARGS__)
#define ARROW_I64(...)		ARROW_COLUMN(__VA_ARGS__)
#define ARROW_F64(...)		ARROW_COLUMN(__VA_ARGS__)
#define ARROW_TEXT(...)		ARROW_COLUMN(__VA_ARGS__)
#define ARROW_LIST32(...)	ARROW_COLUMN(__VA_ARGS__)
#define ARROW_LIST64(...)	ARROW_COLUMN(__VA_ARGS__)

#define TABLE(table, file, about)			ARROW_TABLE(table, about)
#define LOCAL_TABLE(table, about)			ARROW_TABLE(table, about)
#define COLUMN(table, column, sql, arrow, about)	ARROW_##arrow(table, column, arrow, about)
#define LOCAL						COLUMN
#define MADE(table, column, sql, arrow, how, from, about) \
	ARROW_##arrow(table, column, arrow, about)
#define WORDS(table, column, sql, words, about)		ARROW_WORDS(table, column, words, about)
#define LOCAL_WORDS					WORDS
#define END(table)					ARROW_END(table)
#define LOCAL_END					END
#include "schema/list.h"

#undef ARROW_NONE
#undef ARROW_BOOL
#undef ARROW_U32
#undef ARROW_I32
#undef ARROW_U64
#undef ARROW_I64
#undef ARROW_F64
#undef ARROW_TEXT
#undef ARROW_LIST32
#undef ARROW_LIST64
#undef ARROW_TABLE
#undef ARROW_COLUMN
#undef ARROW_WORDS
#undef ARROW_END
