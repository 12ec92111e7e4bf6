/* SPDX-License-Identifier: MIT */
/*
 * analysis/columns/: records as tables of columns: list.h has all of them, fill.h makes rows of
 * records, part.h is their memory, and arrow.c gives it away.
 *
 * The tables and columns of list.h by number, and the types of their values.
 */
#ifndef KB_LIB_ANALYSIS_COLUMNS_TABLES_H
#define KB_LIB_ANALYSIS_COLUMNS_TABLES_H

#include <kbarman/columns.h>

/* The types of list.h: the letter, and the type of a value. */
#define KB_LETTER_OF_BOOL	KB_COLUMN_BOOL
#define KB_LETTER_OF_U8		KB_COLUMN_U8
#define KB_LETTER_OF_U32	KB_COLUMN_U32
#define KB_LETTER_OF_I32	KB_COLUMN_I32
#define KB_LETTER_OF_U64	KB_COLUMN_U64
#define KB_LETTER_OF_I64	KB_COLUMN_I64
#define KB_LETTER_OF_F64	KB_COLUMN_F64
#define KB_LETTER_OF_TEXT	KB_COLUMN_TEXT
#define KB_LETTER_OF_LIST32	KB_COLUMN_LIST32
#define KB_LETTER_OF_LIST64	KB_COLUMN_LIST64

typedef uint8_t kb_value_BOOL, kb_value_U8;
typedef uint32_t kb_value_U32, kb_value_LIST32;
typedef int32_t kb_value_I32;
typedef uint64_t kb_value_U64, kb_value_LIST64;
typedef int64_t kb_value_I64;
typedef double kb_value_F64;
typedef char kb_value_TEXT;

/* KB_TABLE_switches, KB_AT_switches_at_ns, kb_type_switches_at_ns … */
#define ARROW_TABLE(table, about)			KB_TABLE_##table,
enum kb_column_table_index {
#include "analysis/columns/list.h"
	KB_COLUMN_TABLES,
};

#define ARROW_TABLE(table, about)			enum {
#define ARROW_COLUMN(table, column, type, about)	KB_AT_##table##_##column,
#define ARROW_WORDS(table, column, words, about)	KB_AT_##table##_##column,
#define ARROW_END(table)				KB_COLUMNS_OF_##table };
#include "analysis/columns/list.h"

#define ARROW_COLUMN(table, column, type, about) \
	typedef kb_value_##type kb_type_##table##_##column;
#define ARROW_WORDS(table, column, words, about) typedef uint8_t kb_type_##table##_##column;
#include "analysis/columns/list.h"

#define KB_COLUMNS_MOST	16	/* columns of a table */

/* Numbers of words. A value without a word becomes the one behind them. */
#define KB_WORDS_WHAT		17
#define KB_WORDS_CONTEXT	4
#define KB_WORDS_MARK		4
#define KB_WORDS_OBJECT		14
#define KB_WORDS_SERIES		4
#define KB_WORDS_REASON		5
#define KB_WORD_DETAIL		6	/* behind the numbers of enum kb_event_type */
enum { KB_WORD_IRQ, KB_WORD_IPI, KB_WORD_SOFTIRQ };
enum { KB_WORD_WRITTEN, KB_WORD_OVERWRITTEN, KB_WORD_LOST, KB_WORD_MISSED, KB_WORD_STOPPED };

/* The words of states, letters of enum kb_letter, in one string. */
extern const char kb_column_letters[];

/* Which columns are wanted: bits, by table. */
typedef uint32_t kb_columns_wanted[KB_COLUMN_TABLES];

/* The tables and columns of @text: see kb_columns_options. Returns 0 or -EINVAL. */
int kb_columns_want(kb_columns_wanted wanted, const char *text, struct kb_error *err);

#endif
