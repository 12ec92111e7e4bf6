// SPDX-License-Identifier: MIT
/* An interrupted question leaves no trace: no damage is told, and the next answer is whole. */
#include "query/query.h"
#include "query/sqlite.h"

#include "../lib/tap.h"
#include "written.h"

#define SWITCHES	500

static char path[32];

/* The capture is at `path`. Returns the descriptor, which the caller closes. */
static int write_capture(void)
{
	struct written capture = written_begin(&(struct kb_barman_layout){
		.size = sizeof(struct kb_barman_layout), .max_cores = 1, .max_task_infos = 3,
		.max_string_table_length = 64,
	});
	struct kb_event event = { .type = KB_EVENT_TASK_SWITCH };

	for (unsigned int i = 0; i < SWITCHES; i++) {
		event.timestamp = 1000 + i;
		event.task_id = 1 + i % 3;
		if (kb_barman_writer_event(capture.writer, &event))
			abort();
	}
	written_finish(&capture, path);
	return capture.fd;
}

static struct kb_query *open_query(void)
{
	const char *const files[] = { path };
	struct kb_query *query;
	struct kb_error err;

	if (kb_query_open(&query, &(struct kb_query_options){ .files = files, .nr_files = 1 }, &err))
		abort();
	return query;
}

/* The number of rows of @table; a negative code of SQLite. */
static long long count(struct kb_query *query, const char *table)
{
	struct sqlite3_stmt *stmt;
	long long answer;
	char sql[256];
	int ret;

	snprintf(sql, sizeof(sql), "SELECT count(*) FROM %s", table);
	if (kb_sql.prepare_v2(kb_query_db(query), sql, -1, &stmt, NULL))
		abort();
	ret = kb_sql.step(stmt);
	answer = ret == SQL_ROW ? kb_sql.column_int64(stmt, 0) : -ret;
	kb_sql.finalize(stmt);
	return answer;
}

static int partial, damaged, changed, interrupted;

static void interrupt(const char *table)
{
	struct kb_query *fresh = open_query(), *query = open_query();
	long long whole = count(fresh, table), answer, then;
	bool hurt;

	kb_query_interrupt(query);
	answer = count(query, table);
	interrupted += answer == -SQL_INTERRUPT;
	partial += answer != -SQL_INTERRUPT && answer != whole;
	hurt = kb_query_damage(query, 0);
	damaged += hurt;
	kb_query_ready(query);
	then = count(query, table);
	changed += then != whole;
	if (hurt || then != whole || (answer != whole && answer != -SQL_INTERRUPT))
		tap_note("%s: %lld rows, interrupted %lld, then %lld", table, whole, answer, then);
	kb_query_close(fresh);
	kb_query_close(query);
}

int main(void)
{
	struct kb_query_table table;
	struct kb_query *query;
	int fd;

	if (!kb_sql_open()) {
		printf("ok 1 - questions # SKIP SQLite is not installed\n1..1\n");
		return 0;
	}
	fd = write_capture();
	query = open_query();
	for (unsigned int i = 0; kb_query_table(query, i, &table); i++)
		interrupt(table.name);
	tap_ok(interrupted > 5, "a_question_ends_at_an_interrupt");
	tap_is(partial, 0, "an_interrupted_answer_is_no_answer");
	tap_is(damaged, 0, "an_interrupt_is_no_damage_of_the_capture");
	tap_is(changed, 0, "the_answer_after_an_interrupt_is_whole");
	kb_query_close(query);
	close(fd);
	return tap_done();
}
