// SPDX-License-Identifier: MIT
/*
 * See parquet_tables.h. Integers are signed and have 64 bits, because not every engine has others;
 * only addresses are unsigned.
 */
#include "base/array.h"
#include "export/parquet_tables.h"

#define NO_CPU		((int64_t)UINT32_MAX)
#define NOT_KNOWN	(-1)

#define TIME(name)		{ name, KB_PARQUET_I64, KB_FROM_TIME, name, 0, NULL, false }
#define LENGTH			{ "duration_ns", KB_PARQUET_I64, KB_FROM_END, "end_ns", 0, NULL, false }
#define START			{ "ns", KB_PARQUET_I64, KB_FROM_START, NULL, 0, NULL, false }
#define NUMBER(name)		{ name, KB_PARQUET_I64, KB_FROM_NUMBER, name, 0, NULL, false }
#define NUMBER_BUT(name, none)	{ name, KB_PARQUET_I64, KB_FROM_NUMBER, name, none, NULL, false }
#define CPU			NUMBER("cpu")
#define CPU_OR_NONE		NUMBER_BUT("cpu", NO_CPU)
#define BOOL(name)		{ name, KB_PARQUET_BOOL, KB_FROM_NUMBER, name, 0, NULL, false }
#define DOUBLE(name)		{ name, KB_PARQUET_F64, KB_FROM_NUMBER, name, 0, NULL, false }
#define WORD(name)		{ name, KB_PARQUET_NAME, KB_FROM_WORD, name, 0, NULL, false }
#define TEXT(name)		{ name, KB_PARQUET_NAME, KB_FROM_TEXT, name, 0, NULL, false }
#define STACK			{ "stack", KB_PARQUET_NAME, KB_FROM_STACK, "frames", 0, NULL, false }
#define CAPTURE			{ "capture", KB_PARQUET_NAME, KB_FROM_CAPTURE, NULL, 0, NULL, false }
/* The number, the process and the name of a task: three columns. */
#define A_TASK(front, known)								\
	{ front "tid", KB_PARQUET_I64, KB_FROM_NUMBER, front "tid", 0, known, false },	\
	{ front "pid", KB_PARQUET_I64, KB_FROM_PID, front "tid", 0, known, false },	\
	{ front "task", KB_PARQUET_NAME, KB_FROM_TASK, front "tid", 0, known, false }
#define TASK			A_TASK("", NULL)

const struct kb_parquet_table kb_parquet_tables[] = {
	{ "switches", "switches", {
		TIME("ns"), CPU, A_TASK("", "known"), WORD("state"), BOOL("blocked"),
		A_TASK("next_", NULL),
		{ "next_wait_ns", KB_PARQUET_I64, KB_FROM_WAIT, NULL, 0, NULL, true },
		STACK, CAPTURE,
	} },
	{ "samples", "samples", {
		TIME("ns"), CPU, TASK,
		{ "pc", KB_PARQUET_U64, KB_FROM_NUMBER, "pc", 0, "has_pc", false },
		{ "symbol", KB_PARQUET_NAME, KB_FROM_SYMBOL, "frames", 0, NULL, true },
		{ "image", KB_PARQUET_NAME, KB_FROM_IMAGE, "frames", 0, NULL, true },
		STACK,
		{ "event", KB_PARQUET_NAME, KB_FROM_FIRST_EVENT, "cpu", 0, NULL, true },
		{ "weight", KB_PARQUET_I64, KB_FROM_FIRST, "counters", NOT_KNOWN, NULL, true },
		CAPTURE,
	} },
	{ "counters", "counters", {
		TIME("ns"), CPU, TASK,
		{ "event", KB_PARQUET_NAME, KB_FROM_EVENT, "event", 0, NULL, false },
		NUMBER_BUT("value", NOT_KNOWN), BOOL("sampled"), CAPTURE,
	} },
	{ "runs", "runs", {
		TIME("ns"), LENGTH, CPU, TASK, WORD("ended"), CAPTURE,
	} },
	{ "wakeups", "wakeups", {
		TIME("ns"), CPU, TASK, A_TASK("woken_", NULL), NUMBER("woken_cpu"), BOOL("new"),
		WORD("context"), CAPTURE,
	} },
	{ "interrupts", "interrupts", {
		TIME("ns"), LENGTH, NUMBER("own_ns"), CPU, TASK, WORD("kind"), NUMBER("id"),
		{ "handler", KB_PARQUET_NAME, KB_FROM_HANDLER, "handler", 0, NULL, false },
		NUMBER("depth"), CAPTURE,
	} },
	{ "idle", "idle", {
		TIME("ns"), LENGTH, CPU, NUMBER_BUT("idle_state", NOT_KNOWN), WORD("ended"),
		CAPTURE,
	} },
	{ "gaps", "gaps", {
		TIME("ns"), LENGTH, CPU, NUMBER("records"), WORD("reason"), CAPTURE,
	} },
	{ "series", "series", {
		TIME("ns"), CPU_OR_NONE, TASK,
		{ "series", KB_PARQUET_NAME, KB_FROM_SERIES, "series", 0, NULL, false },
		DOUBLE("value"), CAPTURE,
	} },
	{ "marks", "marks", {
		TIME("ns"), CPU_OR_NONE, TASK, WORD("type"), NUMBER("channel"), NUMBER("group_id"),
		NUMBER("colour"),
		{ "text", KB_PARQUET_TEXT, KB_FROM_TEXT, "text", 0, NULL, false },
		CAPTURE,
	} },
	{ "losses", "losses", {
		START, WORD("kind"), CPU_OR_NONE, TEXT("what"), NUMBER("count"), CAPTURE,
	} },
	{ "tasks", "tasks", {
		START, TIME("since_ns"), NUMBER("tid"), NUMBER("pid"), TEXT("task"), CAPTURE,
	} },
	{ "images", "images", {
		START, TIME("since_ns"), NUMBER("tid"),
		{ "address", KB_PARQUET_U64, KB_FROM_NUMBER, "address", 0, NULL, false },
		NUMBER("length"), NUMBER("offset"), TEXT("image"), TEXT("identity"), CAPTURE,
	} },
	{ "facts", "facts", {
		START, TEXT("key"), TEXT("value"), CAPTURE,
	} },
	{ "captures", "header", {
		START,
		{ "duration_ns", KB_PARQUET_I64, KB_FROM_LENGTH, NULL, 0, NULL, false },
		TEXT("target"), NUMBER("cpus"), NUMBER("sample_rate"),
		{ "records", KB_PARQUET_I64, KB_FROM_RECORDS, NULL, 0, NULL, false },
		CAPTURE,
	} },
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
