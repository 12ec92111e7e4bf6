/* SPDX-License-Identifier: MIT */
/* Values of columns. A column whose value is not put is NULL. */
#ifndef KB_LIB_QUERY_QUERY_PUT_H
#define KB_LIB_QUERY_QUERY_PUT_H

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <kbarman/text.h>

#include "analysis/columns/tables.h"
#include "query/sqlite.h"

static inline void query_put_i64(struct sqlite3_context *context, int64_t value)
{
	kb_sql.result_int64(context, value);
}

/* SQLite's numbers have a sign: what is larger becomes a fraction, which is nearly right. */
static inline void query_put_u64(struct sqlite3_context *context, uint64_t value)
{
	if (value <= INT64_MAX)
		kb_sql.result_int64(context, (int64_t)value);
	else
		kb_sql.result_double(context, (double)value);
}

/* @text lives as long as the query. NULL is put as none. */
static inline void query_put_text(struct sqlite3_context *context, const char *text)
{
	if (text)
		kb_sql.result_text(context, text, -1, SQL_STATIC);
}

/* The same for text that may change. */
static inline void query_put_copy(struct sqlite3_context *context, const char *text, size_t length)
{
	kb_sql.result_text(context, text, length > INT32_MAX ? INT32_MAX : (int)length,
			   SQL_TRANSIENT);
}

/* The same for a string. NULL is put as none. */
static inline void query_put_string(struct sqlite3_context *context, const char *text)
{
	if (text)
		query_put_copy(context, text, strlen(text));
}

static inline void query_put_kb_text(struct sqlite3_context *context, struct kb_text text)
{
	if (text.length)
		query_put_copy(context, text.data, text.length);
}

/* The word of @number in a column of words, as Arrow has it: the last one is that of what has none. */
static inline void query_put_word(struct sqlite3_context *context, uint32_t table, uint32_t column,
				  uint32_t number)
{
	uint32_t nr;
	const struct kb_column *of = &kb_columns_tables(&nr)[table].columns[column];

	query_put_text(context, of->words[number < of->nr_words ? number : of->nr_words - 1]);
}

#define QUERY_PUT_WORD(context, table, column, number)	\
	query_put_word(context, KB_TABLE_##table, KB_AT_##table##_##column, number)

/* Addresses are texts, as in the JSON of reports: half of them have no place in SQLite's numbers. */
static inline void query_put_address(struct sqlite3_context *context, uint64_t address)
{
	char text[24];
	int length = snprintf(text, sizeof(text), "0x%" PRIx64, address);

	query_put_copy(context, text, (size_t)length);
}

#endif
