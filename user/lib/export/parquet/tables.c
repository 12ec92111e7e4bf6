// SPDX-License-Identifier: MIT
/*
 * The tables of schema/list.h as files have them. Integers are signed and have 64 bits, because
 * not every engine has others; only addresses are unsigned.
 */
#include "base/array.h"
#include "export/parquet/tables.h"

#define SOURCE(column, kind, way, of, ...)	\
	{ .name = column, .type = KB_PARQUET_##kind, .how = way, .from = of, .none = __VA_ARGS__ },
#define I64(column, way, of, ...)	SOURCE(column, I64, way, of, __VA_ARGS__)
#define NAME(column, way, of, ...)	SOURCE(column, NAME, way, of, __VA_ARGS__)

/* What is in a file as it is in Arrow, by the type there. */
#define FILE_U32(name)		I64(name, KB_FROM_NUMBER, name, 0)
#define FILE_U64(name)		I64(name, KB_FROM_NUMBER, name, 0)
#define FILE_I64(name)		I64(name, KB_FROM_NUMBER, name, 0)
#define FILE_BOOL(name)		SOURCE(name, BOOL, KB_FROM_NUMBER, name, 0)
#define FILE_F64(name)		SOURCE(name, F64, KB_FROM_NUMBER, name, 0)
#define FILE_TEXT(name)		NAME(name, KB_FROM_TEXT, name, 0)

/* What is made of another column. */
#define MAKE_TIME(name, from)		I64(name, KB_FROM_TIME, from, 0)
#define MAKE_START(name, from)		I64(name, KB_FROM_START, NULL, 0)
#define MAKE_LENGTH(name, from)		I64(name, KB_FROM_LENGTH, NULL, 0)
#define MAKE_RECORDS(name, from)	I64(name, KB_FROM_RECORDS, NULL, 0)
#define MAKE_DELAY(name, from)		I64(name, KB_FROM_WAIT, NULL, 0, .optional = true)
#define MAKE_CPU_OR_NONE(name, from)	I64(name, KB_FROM_NUMBER, from, UINT32_MAX)
#define MAKE_NOT_NEGATIVE(name, from)	I64(name, KB_FROM_NUMBER, from, -1)
#define MAKE_FIRST(name, from)		I64(name, KB_FROM_FIRST, from, -1, .optional = true)
#define MAKE_IF_KNOWN(name, from)	I64(name, KB_FROM_NUMBER, name, 0, .unless = from)
#define MAKE_PID(name, from)		I64(name, KB_FROM_PID, from, 0)
#define MAKE_PID_IF_KNOWN(name, from)	I64(name, KB_FROM_PID, from, 0, .unless = "known")
#define MAKE_PID_AT_END(name, from)	I64(name, KB_FROM_PID, from, 0, .at_end = true)
#define MAKE_TASK(name, from)		NAME(name, KB_FROM_TASK, from, 0)
#define MAKE_TASK_IF_KNOWN(name, from)	NAME(name, KB_FROM_TASK, from, 0, .unless = "known")
#define MAKE_TASK_AT_END(name, from)	NAME(name, KB_FROM_TASK, from, 0, .at_end = true)
#define MAKE_EVENT(name, from)		NAME(name, KB_FROM_EVENT, from, 0)
#define MAKE_FIRST_EVENT(name, from)	NAME(name, KB_FROM_FIRST_EVENT, from, 0, .optional = true)
#define MAKE_SERIES(name, from)		NAME(name, KB_FROM_SERIES, from, 0)
#define MAKE_HANDLER(name, from)	NAME(name, KB_FROM_HANDLER, from, 0)
#define MAKE_SYMBOL(name, from)		NAME(name, KB_FROM_SYMBOL, from, 0, .optional = true)
#define MAKE_IMAGE(name, from)		NAME(name, KB_FROM_IMAGE, from, 0, .optional = true)
#define MAKE_STACK(name, from)		NAME(name, KB_FROM_STACK, from, 0)
#define MAKE_LONG_TEXT(name, from)	SOURCE(name, TEXT, KB_FROM_TEXT, from, 0)
#define MAKE_ADDRESS(name, from)	SOURCE(name, U64, KB_FROM_NUMBER, from, 0)
#define MAKE_IF_HAS_PC(name, from)	SOURCE(name, U64, KB_FROM_NUMBER, name, 0, .unless = from)

#define TABLE(table, file, about)			{ #file, #table, {
#define COLUMN(table, column, sql, arrow, about)	FILE_##arrow(#column)
#define WORDS(table, column, sql, words, about)		NAME(#column, KB_FROM_WORD, #column, 0)
#define MADE(table, column, sql, arrow, how, from, about) MAKE_##how(#column, #from)
#define END(table)					NAME("capture", KB_FROM_CAPTURE, NULL, 0) } },
const struct kb_parquet_table kb_parquet_tables[] = {
#include "schema/list.h"
};
const size_t kb_nr_parquet_tables = ARRAY_SIZE(kb_parquet_tables);

struct kb_parquet_column kb_parquet_column_of(const struct kb_parquet_source *source)
{
	return (struct kb_parquet_column) {
		.name = source->name,
		.type = source->type,
		.optional = source->optional || source->none || source->unless,
		.list = source->how == KB_FROM_STACK,
	};
}
