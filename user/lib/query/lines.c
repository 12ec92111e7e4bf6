// SPDX-License-Identifier: MIT
/*
 * Reports as tables. The lines of JSON of a report are made when they are first asked for, by the
 * same code that prints them, so their numbers are the same. A view for each kind of line has its
 * keys as columns.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "query/module.h"
#include "query/query_put.h"

/* ---- the views: kinds and keys of kbarman-json(5) ---- */

#define NAMES	"pid tid task "
#define STATS	"waits sum_ns median_ns p99_ns max_ns "
#define PARTS	"waking_ns halt_ns idle_ns queue_ns softirq_ns irq_ns unknown_ns "
#define ORIGIN	"by by_id by_name by_call by_cpu "

static const struct kind {
	const char *name;
	enum kb_query_lines of;
	const char *keys, *what;
} kinds[] = {
	{ "report", KB_QUERY_REPORT,
	  "target host release command filter fallback asleep clock_unsteady unix_base_ns duration_ns wanted_ns "
	  "cpus records samples samples_without_pc samples_filtered samples_partial switches halts "
	  "annotations custom_counters unknown weight_of weight idle_samples idle_weight counters "
	  "metrics lost backwards damaged", "the capture, and sums" },
	{ "uncounted", KB_QUERY_REPORT, "event cpus", "events that some CPUs do not count" },
	{ "unsampled", KB_QUERY_REPORT, "event cpus", "CPUs that take no samples" },
	{ "symbol", KB_QUERY_REPORT,
	  "percent weight samples idle counters ipc metrics partial pid task mode image kernel symbol "
	  "address source",
	  "samples by task, image and symbol" },
	{ "task_samples", KB_QUERY_REPORT,
	  NAMES "percent weight samples idle counters ipc metrics partial command", "samples by task" },
	{ "task_counters", KB_QUERY_REPORT, NAMES "samples counters errors estimates parts ipc metrics metrics_low metrics_high partial command",
	  "counts of each task" },
	{ "all_counters", KB_QUERY_REPORT, "estimates errors parts",
	  "counts of counters that took turns, of all tasks" },
	{ "call", KB_QUERY_CALLS, "depth task symbol image kernel percent total self",
	  "the tree of calls, depth first" },
	{ "wait_call", KB_QUERY_CALLS, "depth task symbol image kernel percent total self",
	  "the tree of waiting, depth first" },
	{ "task_time", KB_QUERY_REPORT,
	  NAMES "run_ns runs preempted blocked preempted_ns blocked_ns longest_wait_ns "
	  "longest_wait_at_ns longest_wait_blocked longest_wait_asleep migrations command",
	  "how tasks spent their time" },
	{ "wait", KB_QUERY_REPORT, NAMES "blocked asleep duration_ns at_ns by by_id by_name by_call stack command", "the longest waits" },
	{ "cpu", KB_QUERY_REPORT, "cpu busy_ns awake_ns halted_ns lost_ns switches",
	  "how CPUs spent their time" },
	{ "idle", KB_QUERY_REPORT, "cpu idle_state count duration_ns longest_ns per_second", "idle states" },
	{ "trigger", KB_QUERY_REPORT, "at_ns timestamp cpu tid measured expression reason",
	  "moments for which a trigger wrote the capture" },
	{ "triggers", KB_QUERY_REPORT, "moments suppressed unwatched_bytes", "how many there were" },
	{ "end", KB_QUERY_REPORT, "how at_ns cpu tid task text chain", "how a recording ended that was in memory" },
	{ "last", KB_QUERY_REPORT,
	  "state cpu tid task run_ns since_ns holds_up held_up object call iowait device object_value pid name "
	  "holder_tid holder",
	  "its last second: what CPUs ran, and tasks that did not run at its end" },
	{ "lost", KB_QUERY_REPORT, "cpu reason records", "lost records" },
	{ "missed", KB_QUERY_REPORT, "what count", "facts without room" },
	{ "stopped", KB_QUERY_REPORT, "cpu reason times duration_ns first_ns last_ns", "stops of counters" },
	{ "latency", KB_QUERY_LATENCY,
	  "host release command sources unix_base_ns duration_ns cpus records wakeups migrations "
	  "interrupts softirqs lost gaps cut unexplained filtered unsure damaged",
	  "what the reports of latencies and interrupts are made of" },
	{ "latency_sum", KB_QUERY_LATENCY, "preempted " STATS PARTS "powers", "waits for a CPU" },
	{ "latency_task", KB_QUERY_LATENCY, NAMES "preempted " STATS PARTS, "those of each task" },
	{ "latency_waker", KB_QUERY_LATENCY, "by id name " STATS PARTS, "those by waker" },
	{ "latency_idle", KB_QUERY_LATENCY, "idle_state " STATS, "how long CPUs left idle states" },
	{ "latency_behind", KB_QUERY_LATENCY, "task ran what duration_ns pieces", "what ran meanwhile" },
	{ "latency_wait", KB_QUERY_LATENCY,
	  NAMES "preempted new " ORIGIN "cpu duration_ns at_ns idle_state moves " PARTS "ran others_ns",
	  "the worst waits for a CPU" },
	{ "interrupt", KB_QUERY_LATENCY,
	  "what id handler count own_ns longest_ns longest_at_ns longest_cpu raised delays delay_ns "
	  "longest_delay_ns", "handlers of interrupts and softirqs" },
	{ "interrupt_from", KB_QUERY_LATENCY, "what id handler task duration_ns pieces",
	  "what they took from whom" },
	{ "halts", KB_QUERY_LATENCY,
	  "cpu idle_state idle_state_name count duration_ns above above_ns below below_ns", "halts by state" },
	{ "halt_end", KB_QUERY_LATENCY, "cpu idle_state by id name count", "what ended halts" },
	{ "halts_paid", KB_QUERY_LATENCY, "cpu idle_state was paid count duration_ns",
	  "halts for which another state would have paid" },
	{ "halt_miss", KB_QUERY_LATENCY,
	  "cpu chosen idle_state was paid at_ns duration_ns off_ns ended_by ended_by_id ended_by_name " NAMES ORIGIN,
	  "the worst of them" },
	{ "cpu_time", KB_QUERY_LATENCY,
	  "cpu first_ns last_ns unknown_ns lost_ns task_ns idle_ns halt_ns softirq_ns irq_ns ipi_ns",
	  "what each CPU did, to the nanosecond" },
	{ "waits", KB_QUERY_WAITS, "duration_ns sum_ns objects damaged", "the capture, and the sum of its waits" },
	{ "waited_for", KB_QUERY_WAITS,
	  "task object inferred call iowait others device object_value pid name holder_tid holder by by_id by_name by_call " STATS,
	  "what tasks waited for" },
	{ "classes", KB_QUERY_CLASSES, "duration_ns tasks only_some calls faults interrupts wakeups objects damaged",
	  "the capture, and what it can tell from each other" },
	{ "class_sum", KB_QUERY_CLASSES, "class sum_ns", "time of all tasks by class" },
	{ "class_cpu", KB_QUERY_CLASSES, "cpu class sum_ns", "time of each CPU by class" },
	{ "class_task", KB_QUERY_CLASSES, NAMES "lived_ns", "tasks, with the time that they lived" },
	{ "class_of", KB_QUERY_CLASSES,
	  NAMES "class call number compat fault state object inferred iowait others device object_value name sum_ns",
	  "time of each task by class, call, and what it waited for" },
	{ "syscalls", KB_QUERY_SYSCALLS, "duration_ns calls sum_ns damaged", "the capture, and the sum of its system calls" },
	{ "syscalls_of", KB_QUERY_SYSCALLS,
	  "task call number compat calls errors unbegun sum_ns median_ns p99_ns max_ns", "system calls by task and call" },
	{ "faults", KB_QUERY_FAULTS, "duration_ns faults sum_ns damaged", "the capture, and the sum of its page faults" },
	{ "faults_of", KB_QUERY_FAULTS,
	  "task fault symbol image faults errors unbegun sum_ns median_ns p99_ns max_ns", "page faults by task and function" },
	{ "block", KB_QUERY_BLOCK, "duration_ns requests sum_ns damaged", "the capture, and the sum of its block requests" },
	{ "block_of", KB_QUERY_BLOCK,
	  "task disk device operation bytes requests errors unbegun sum_ns median_ns p99_ns max_ns",
	  "block requests by task, disk and operation" },
};

static const struct lines {
	const char *name, *what;
} lines[KB_QUERY_LINES] = {
	[KB_QUERY_REPORT] = { "report_lines", "the lines of kbarman report --json -M all" },
	[KB_QUERY_CALLS] = { "report_call_lines", "those of kbarman report --json -g" },
	[KB_QUERY_LATENCY] = { "report_latency_lines",
			       "those of kbarman report --json --latency --irq" },
	[KB_QUERY_WAITS] = { "report_waits_lines", "those of kbarman report --json --waits" },
	[KB_QUERY_CLASSES] = { "report_classes_lines", "those of kbarman report --json --classes" },
	[KB_QUERY_SYSCALLS] = { "report_syscalls_lines", "those of kbarman report --json --syscalls" },
	[KB_QUERY_FAULTS] = { "report_faults_lines", "those of kbarman report --json --faults" },
	[KB_QUERY_BLOCK] = { "report_block_lines", "those of kbarman report --json --block" },
};

#define COLUMNS	"file INTEGER, kind TEXT, line TEXT"

/* ---- the lines ---- */

struct cursor {
	struct query_cursor base;	/* the first member; row: the number of the line */
	const char *line, *end;		/* the current line; end of all lines of the file */
	size_t length;			/* of the line */
	char *kind;			/* NULL: any */
};

/* The kind, in column 1, is looked at before SQLite sees a line. */
static int best_index(struct sql_vtab *base, struct sql_index_info *info)
{
	(void)base;
	info->rows = 10000;
	info->cost = 1e6;
	for (int i = 0; i < info->nr_constraints; i++) {
		const struct sql_constraint *constraint = &info->constraints[i];

		if (constraint->column != 1 || constraint->op != SQL_EQ || !constraint->usable ||
		    strcmp(kb_sql.vtab_collation(info, i), "BINARY"))
			continue;
		info->usage[i].argument = 1;
		info->rows = 100;
		info->cost = 1e4;
		break;
	}
	return SQL_OK;
}

/* The lines of the current file; made now if nobody has asked before. */
static int begin(struct query_cursor *base, struct kb_error *err)
{
	struct cursor *cursor = (struct cursor *)base;
	enum kb_query_lines which = (enum kb_query_lines)((const struct lines *)
							  query_told_of(base)->table - lines);
	struct kb_query *query = query_told_of(base)->query;
	struct query_file *file = query_file_of(base);
	struct kb_out **out = &file->lines[which];
	size_t size;
	int ret;

	if (!*out) {
		if (kb_out_memory(out))
			return -ENOMEM;
		ret = query->make_lines(query->context, which, file->trace, *out, err);
		/* what was read until then looks like a damaged capture */
		if (query->stop)
			ret = -EINTR;
		if (ret) {
			kb_out_destroy(*out);
			*out = NULL;
			return ret;
		}
	}
	cursor->line = kb_out_data(*out, &size);
	cursor->end = cursor->line + size;
	cursor->length = 0;
	base->row = 0;
	return 0;
}

/* {"kind":"KIND",… */
static const char *kind_of(const struct cursor *cursor, size_t *length)
{
	static const char front[] = "{\"kind\":\"";
	const char *kind = cursor->line + sizeof(front) - 1;

	*length = 0;
	if (cursor->length < sizeof(front) || memcmp(cursor->line, front, sizeof(front) - 1))
		return "";
	while (kind + *length < cursor->line + cursor->length && kind[*length] != '"')
		++*length;
	return kind;
}

static bool is_wanted(const struct cursor *cursor)
{
	size_t length;
	const char *kind = kind_of(cursor, &length);

	return !cursor->kind || (strlen(cursor->kind) == length && !memcmp(kind, cursor->kind, length));
}

/* Set the line behind the current one, if the file has one. */
static bool next_line(struct cursor *cursor)
{
	const char *at = cursor->line + cursor->length, *newline;

	if (at < cursor->end && *at == '\n')
		at++;
	if (at >= cursor->end)
		return false;
	newline = memchr(at, '\n', (size_t)(cursor->end - at));
	cursor->line = at;
	cursor->length = (size_t)((newline ? newline : cursor->end) - at);
	cursor->base.row++;
	return true;
}

static int step(struct query_cursor *base, struct kb_error *err)
{
	struct cursor *cursor = (struct cursor *)base;

	(void)err;
	while (next_line(cursor))
		if (is_wanted(cursor))
			return 1;
	return 0;
}

static int ask(struct query_cursor *base, const char *plan, int argc, struct sqlite3_value **argv,
	       struct kb_error *err)
{
	struct cursor *cursor = (struct cursor *)base;

	(void)plan;
	(void)err;
	free(cursor->kind);
	cursor->kind = NULL;
	if (argc && kb_sql.value_type(argv[0]) == SQL_TEXT) {
		cursor->kind = strdup((const char *)kb_sql.value_text(argv[0]));
		if (!cursor->kind)
			return -ENOMEM;
	}
	return 0;
}

static void end(struct query_cursor *base)
{
	free(((struct cursor *)base)->kind);
}

static int column(struct sql_cursor *base, struct sqlite3_context *context, int i)
{
	const struct cursor *cursor = (const struct cursor *)base;
	size_t length;
	const char *kind;

	if (i == 0) {
		query_put_i64(context, cursor->base.file + 1);
	} else if (i == 1) {
		kind = kind_of(cursor, &length);
		query_put_copy(context, kind, length);
	} else {
		query_put_copy(context, cursor->line, cursor->length);
	}
	return SQL_OK;
}

static const struct query_kind kind_of_lines = {
	.cursor_bytes = sizeof(struct cursor),
	.ask = ask,
	.begin = begin,
	.step = step,
	.end = end,
	.module = QUERY_MODULE(best_index, column, query_rowid),
};

/* ---- all of them ---- */

/* CREATE VIEW report_KIND AS SELECT file, json_extract(line, '$.KEY') AS "KEY", … */
static int add_view(struct kb_query *query, const struct kind *kind, struct kb_error *err)
{
	bool whole = !strcmp(kind->name, "report");
	struct kb_out *out;
	size_t size, length;
	int ret;

	if (kb_out_memory(&out))
		return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
	kb_out_printf(out, "CREATE VIEW report%s%s AS SELECT file", whole ? "" : "_",
		      whole ? "" : kind->name);
	for (const char *key = kind->keys; *key; key += length + (key[length] == ' ')) {
		length = strcspn(key, " ");
		kb_out_printf(out, ", json_extract(line, '$.%.*s') AS \"%.*s\"", (int)length, key,
			      (int)length, key);
	}
	kb_out_printf(out, " FROM %s WHERE kind = '%s' -- %s\n", lines[kind->of].name, kind->name,
		      kind->what);
	kb_out_bytes(out, "", 1);
	ret = kb_out_error(out) ? -ENOMEM : 0;
	if (!ret && kb_sql.exec(query->db, kb_out_data(out, &size), NULL, NULL, NULL))
		ret = -EINVAL;
	if (ret)
		kb_error_set(err, ret, KB_NO_OFFSET, "%s", kb_sql.errmsg(query->db));
	kb_out_destroy(out);
	return ret;
}

int query_add_lines(struct kb_query *query, struct kb_error *err)
{
	int ret = 0;

	if (!query->make_lines)
		return 0;
	for (unsigned int i = 0; i < KB_QUERY_LINES && !ret; i++)
		ret = query_add_table(query, &kind_of_lines, &lines[i], lines[i].name, COLUMNS,
				      lines[i].what, err);
	for (size_t i = 0; i < ARRAY_SIZE(kinds) && !ret; i++)
		ret = add_view(query, &kinds[i], err);
	return ret;
}
