// SPDX-License-Identifier: MIT
/* Which tables and columns there are, and which of them somebody wants. */
#include <errno.h>
#include <string.h>

#include "analysis/columns/tables.h"
#include "base/array.h"

/* ---- what there is ---- */

static const char *const type_words[] = {
	"unknown", "sample", "switch", "value", "mark", "halt", "detail",
};
static const char *const state_words[] = { "R", "S", "D", "T", "t", "X", "Z", "P", "I", "?" };
const char kb_column_letters[] = "RSDTtXZPI?";
static const char *const end_words[] = {
	"preempted", "blocked", "halt", "resume", "lost", "found", "capture",
};
static const char *const context_words[] = { "task", "softirq", "irq", "idle", "other" };
static const char *const what_words[] = {
	"value", "waking", "waking_new", "migrate", "irq_entry", "irq_exit", "ipi_entry",
	"ipi_exit", "softirq_raise", "softirq_entry", "softirq_exit", "frequency", "idle_miss",
	"lost", "syscall", "fault", "block", "other",
};
static const char *const mark_words[] = { "string", "bookmark", "channel", "group", "other" };
static const char *const object_words[] = {
	"none", "call", "no_call", "file", "device", "pipe", "socket", "anon", "futex", "mutex",
	"semaphore", "rwsem_read", "rwsem_write", "fault", "other",
};
static const char *const handler_words[] = { "irq", "ipi", "softirq" };
static const char *const series_words[] = { "other", "delta", "incident", "absolute" };
static const char *const reason_words[] = {
	"unknown", "full", "nested", "too_big", "rate", "other",
};
static const char *const loss_words[] = { "written", "overwritten", "lost", "missed", "stopped" };

_Static_assert(ARRAY_SIZE(type_words) == KB_WORD_DETAIL + 1 &&
	       ARRAY_SIZE(state_words) == sizeof(kb_column_letters) - 1 &&
	       ARRAY_SIZE(what_words) == KB_WORDS_WHAT + 1 &&
	       ARRAY_SIZE(context_words) == KB_WORDS_CONTEXT + 1 &&
	       ARRAY_SIZE(mark_words) == KB_WORDS_MARK + 1 &&
	       ARRAY_SIZE(object_words) == KB_WORDS_OBJECT + 1 &&
	       ARRAY_SIZE(reason_words) == KB_WORDS_REASON + 1 &&
	       ARRAY_SIZE(series_words) == KB_WORDS_SERIES, "each number has its word");

#define ARROW_TABLE(table, text)	static const struct kb_column table##_columns[] = {
#define ARROW_COLUMN(table, column, letter, text)	\
	{ .name = #column, .about = (text), .type = KB_LETTER_OF_##letter },
#define ARROW_WORDS(table, column, list, text)	\
	{ .name = #column, .about = (text), .type = KB_COLUMN_U8, .words = (list), \
	  .nr_words = ARRAY_SIZE(list) },
#define ARROW_END(table)	}; \
	_Static_assert(ARRAY_SIZE(table##_columns) <= KB_COLUMNS_MOST, "too many columns");
#include "analysis/columns/list.h"

#define ARROW_TABLE(table, text)	\
	{ .name = #table, .about = (text), .columns = table##_columns, \
	  .nr_columns = ARRAY_SIZE(table##_columns) },
static const struct kb_column_table tables[] = {
#include "analysis/columns/list.h"
};

/* Names of columns that work until 1.0. */
static const struct {
	enum kb_column_table_index table;
	uint32_t column;
	const char *name;
} olds[] = {
#define OLD(table, old, column)	{ KB_TABLE_##table, KB_AT_##table##_##column, #old },
#include "analysis/columns/list.h"
};

const struct kb_column_table *kb_columns_tables(uint32_t *nr)
{
	*nr = ARRAY_SIZE(tables);
	return tables;
}

static bool is_word(const char *name, const char *word, size_t length)
{
	return strncmp(name, word, length) == 0 && !name[length];
}

static int find_table(const char *word, size_t length)
{
	for (size_t i = 0; i < ARRAY_SIZE(tables); i++)
		if (is_word(tables[i].name, word, length))
			return (int)i;
	return -1;
}

static uint32_t find_column(const struct kb_column_table *table, const char *word, size_t length)
{
	for (uint32_t i = 0; i < table->nr_columns; i++)
		if (is_word(table->columns[i].name, word, length))
			return i;
	for (size_t i = 0; i < ARRAY_SIZE(olds); i++)
		if (&tables[olds[i].table] == table && is_word(olds[i].name, word, length))
			return olds[i].column;
	return UINT32_MAX;
}

int kb_columns_find(const char *table, uint32_t *index, const char *column)
{
	int found = find_table(table, strlen(table));

	if (column)
		*index = found < 0 ? UINT32_MAX :
				     find_column(&tables[found], column, strlen(column));
	return found;
}

/* ---- what is wanted ---- */

/* TABLE or TABLE.COLUMN, @length bytes. */
static int want(kb_columns_wanted wanted, const char *word, size_t length, struct kb_error *err)
{
	const char *dot = memchr(word, '.', length);
	size_t table_length = dot ? (size_t)(dot - word) : length;
	int table = find_table(word, table_length);
	uint32_t column;

	if (table < 0)
		return kb_error_set(err, -EINVAL, KB_NO_OFFSET, "there is no table '%.*s'",
				    (int)table_length, word);
	if (!dot) {
		for (column = 0; column < tables[table].nr_columns; column++)
			if (strcmp(tables[table].columns[column].name, "frames") != 0)
				wanted[table] |= UINT32_C(1) << column;
		return 0;
	}
	column = find_column(&tables[table], dot + 1, length - table_length - 1);
	if (column == UINT32_MAX)
		return kb_error_set(err, -EINVAL, KB_NO_OFFSET, "table '%s' has no column '%.*s'",
				    tables[table].name, (int)(length - table_length - 1), dot + 1);
	wanted[table] |= UINT32_C(1) << column;
	return 0;
}

int kb_columns_want(kb_columns_wanted wanted, const char *text, struct kb_error *err)
{
	for (size_t length; text && *text; text += length) {
		int ret;

		text += strspn(text, " \t\n");
		length = strcspn(text, " \t\n");
		ret = length ? want(wanted, text, length, err) : 0;
		if (ret)
			return ret;
	}
	return 0;
}
