// SPDX-License-Identifier: MIT
/*
 * Fuzz target of questions: a capture with whatever in its header and records, read by each table.
 * What is found between two times, or at a record, must be the same whether the table is told of
 * that (and begins in the middle) or not. The last byte chooses the table and the times.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "query/query.h"
#include "query/sqlite.h"

static void must(bool good)
{
	if (!good)
		abort();
}

static struct kb_query *query;

/* The value of a question; -1: it ended with an error, such as one of memory. */
static long long __attribute__((format(printf, 1, 0)))
ask(const char *format, const char *table, unsigned int choice)
{
	struct sqlite3_stmt *stmt;
	long long value = -1;
	char sql[1024];

	snprintf(sql, sizeof(sql), format, table, choice % 16, choice / 16);
	must(kb_sql.prepare_v2(kb_query_db(query), sql, -1, &stmt, NULL) == SQL_OK);
	if (kb_sql.step(stmt) == SQL_ROW)
		value = kb_sql.column_int64(stmt, 0);
	kb_sql.finalize(stmt);
	return value;
}

/* All values of the table, of which nothing is known. */
static void read_all(const char *table)
{
	struct sqlite3_stmt *stmt;
	char sql[256];

	snprintf(sql, sizeof(sql), "SELECT * FROM %s LIMIT 200", table);
	must(kb_sql.prepare_v2(kb_query_db(query), sql, -1, &stmt, NULL) == SQL_OK);
	while (kb_sql.step(stmt) == SQL_ROW)
		for (int i = 0; i < kb_sql.column_count(stmt); i++)
			kb_sql.column_text(stmt, i);
	kb_sql.finalize(stmt);
}

static void compare(const char *table, unsigned int choice)
{
	static const char *const formats[][2] = {
		{ "SELECT count(*) FROM %1$s WHERE at_ns >= (SELECT at_ns FROM %1$s LIMIT 1 OFFSET %2$u) "
		  "AND at_ns <= (SELECT at_ns FROM %1$s LIMIT 1 OFFSET %3$u + 3)",
		  "SELECT count(*) FROM %1$s WHERE +at_ns >= (SELECT at_ns FROM %1$s LIMIT 1 OFFSET %2$u) "
		  "AND +at_ns <= (SELECT at_ns FROM %1$s LIMIT 1 OFFSET %3$u + 3)" },
		{ "SELECT count(*) FROM %1$s WHERE record = (SELECT record FROM %1$s LIMIT 1 OFFSET %2$u) "
		  "-- %3$u",
		  "SELECT count(*) FROM %1$s WHERE +record = (SELECT record FROM %1$s LIMIT 1 OFFSET %2$u) "
		  "-- %3$u" },
		{ "SELECT count(*) FROM (SELECT record FROM records ORDER BY record %% (%2$u + 1), record "
		  "LIMIT 300) s CROSS JOIN %1$s t ON t.record = s.record -- %3$u",
		  "SELECT count(*) FROM %1$s WHERE +record IN (SELECT record FROM records ORDER BY "
		  "record %% (%2$u + 1), record LIMIT 300) -- %3$u" },
	};

	for (unsigned int i = 0; i < sizeof(formats) / sizeof(formats[0]); i++)
		must(ask(formats[i][0], table, choice) == ask(formats[i][1], table, choice));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* no image of this machine is read, whatever the capture calls for */
	const struct kb_symbol_options nothing = {
		.size = sizeof(nothing), .symfs = "/nonexistent",
	};
	int fd = memfd_create("capture", MFD_CLOEXEC);
	char path[32];
	const char *const paths[] = { path };
	const struct kb_query_options how = {
		.files = paths, .nr_files = 1, .symbols = &nothing, .memory = 64 << 20,
	};
	unsigned int choice = size ? data[size - 1] : 0;
	struct kb_query_table table;
	struct kb_error err;

	must(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (!kb_query_open(&query, &how, &err)) {
		for (unsigned int i = 0; kb_query_table(query, i, &table); i++) {
			if (i % 4 == choice % 4)
				read_all(table.name);
			if (i == choice % 16 && strstr(table.declaration, "at_ns INTEGER, cpu"))
				compare(table.name, choice);
		}
		kb_query_close(query);
	}
	close(fd);
	return 0;
}
