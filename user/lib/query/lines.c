// SPDX-License-Identifier: MIT
/*
 * Reports as tables. The lines of JSON of a report are made when they are first asked for, by the
 * same code that prints them, so their numbers are the same. A view for each kind of line has its
 * keys as columns.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "query/query_inside.h"
#include "query/query_put.h"

/* ---- the views: kinds and keys of kbarman-json(5) ---- */

#define NAMES	"pid tid task "
#define STATS	"waits sum_ns median_ns p99_ns max_ns "
#define PARTS	"waking_ns halt_ns idle_ns queue_ns softirq_ns irq_ns unknown_ns "
#define ORIGIN	"by by_id by_name by_cpu "

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
	  NAMES "percent weight samples idle counters ipc metrics partial", "samples by task" },
	{ "task_counters", KB_QUERY_REPORT, NAMES "samples counters errors estimates parts ipc metrics metrics_low metrics_high partial",
	  "counts of each task" },
	{ "all_counters", KB_QUERY_REPORT, "estimates errors parts",
	  "counts of counters that took turns, of all tasks" },
	{ "call", KB_QUERY_CALLS, "depth task symbol image kernel percent total self",
	  "the tree of calls, depth first" },
	{ "wait_call", KB_QUERY_CALLS, "depth task symbol image kernel percent total self",
	  "the tree of waiting, depth first" },
	{ "task_time", KB_QUERY_REPORT,
	  NAMES "run_ns runs preempted blocked preempted_ns blocked_ns longest_wait_ns "
	  "longest_wait_at_ns longest_wait_blocked longest_wait_asleep migrations",
	  "how tasks spent their time" },
	{ "wait", KB_QUERY_REPORT, NAMES "blocked asleep duration_ns at_ns by by_id by_name stack", "the longest waits" },
	{ "cpu", KB_QUERY_REPORT, "cpu busy_ns awake_ns halted_ns lost_ns switches",
	  "how CPUs spent their time" },
	{ "idle", KB_QUERY_REPORT, "cpu idle_state count duration_ns longest_ns per_second", "idle states" },
	{ "trigger", KB_QUERY_REPORT, "at_ns timestamp cpu tid measured expression reason",
	  "moments for which a trigger wrote the capture" },
	{ "triggers", KB_QUERY_REPORT, "moments suppressed unwatched_bytes", "how many there were" },
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
};

static const struct lines {
	const char *name, *what;
} lines[KB_QUERY_LINES] = {
	[KB_QUERY_REPORT] = { "report_lines", "the lines of kbarman report --json -M all" },
	[KB_QUERY_CALLS] = { "report_call_lines", "those of kbarman report --json -g" },
	[KB_QUERY_LATENCY] = { "report_latency_lines",
			       "those of kbarman report --json --latency --irq" },
};

#define COLUMNS	"file INTEGER, kind TEXT, line TEXT"

/* ---- the lines ---- */

struct aux {
	struct kb_query *query;
	enum kb_query_lines which;
};

struct vtab {
	struct sql_vtab base;	/* the first member */
	struct kb_query *query;
	enum kb_query_lines which;
};

struct cursor {
	struct sql_cursor base;	/* the first member */
	struct vtab *vtab;
	unsigned int file;
	const char *line, *end;	/* the current line; end of all lines of the file */
	size_t length;		/* of the line */
	char *kind;		/* NULL: any */
	long long number;
};

static int connect_lines(struct sqlite3 *db, void *aux, int argc, const char *const *argv,
			 struct sql_vtab **out, char **message)
{
	const struct aux *made = aux;
	struct vtab *vtab;
	int ret;

	(void)argc;
	(void)argv;
	(void)message;
	ret = query_connect(made->query, db, lines[made->which].name, sizeof(*vtab), out);
	if (ret)
		return ret;
	vtab = (struct vtab *)*out;
	vtab->query = made->query;
	vtab->which = made->which;
	return SQL_OK;
}

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

static int open_cursor(struct sql_vtab *base, struct sql_cursor **out)
{
	struct cursor *cursor = calloc(1, sizeof(*cursor));

	if (!cursor)
		return SQL_NOMEM;
	cursor->vtab = (struct vtab *)base;
	*out = &cursor->base;
	return SQL_OK;
}

static int close_cursor(struct sql_cursor *base)
{
	struct cursor *cursor = (struct cursor *)base;

	free(cursor->kind);
	free(cursor);
	return SQL_OK;
}

/* The lines of the current file; made now if nobody has asked before. */
static int begin_file(struct cursor *cursor)
{
	struct kb_query *query = cursor->vtab->query;
	struct query_file *file = &query->files[cursor->file];
	struct kb_out **out = &file->lines[cursor->vtab->which];
	struct kb_error err = { 0 };
	size_t size;
	int ret;

	if (!*out) {
		ret = kb_out_memory(out);
		if (ret)
			return SQL_NOMEM;
		ret = query->make_lines(query->context, cursor->vtab->which, file->trace, *out, &err);
		/* what was read until then looks like a damaged capture */
		if (query->stop)
			ret = -EINTR;
		if (ret) {
			kb_out_destroy(*out);
			*out = NULL;
			err.code = ret;
			return query_say(&cursor->vtab->base, &err);
		}
	}
	cursor->line = kb_out_data(*out, &size);
	cursor->end = cursor->line + size;
	cursor->length = 0;
	return SQL_OK;
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
static bool step(struct cursor *cursor)
{
	const char *at = cursor->line + cursor->length, *newline;

	if (at < cursor->end && *at == '\n')
		at++;
	if (at >= cursor->end)
		return false;
	newline = memchr(at, '\n', (size_t)(cursor->end - at));
	cursor->line = at;
	cursor->length = (size_t)((newline ? newline : cursor->end) - at);
	cursor->number++;
	return true;
}

static int find_line(struct cursor *cursor)
{
	for (;;) {
		while (step(cursor))
			if (is_wanted(cursor))
				return SQL_OK;
		cursor->line = cursor->end = NULL;
		if (cursor->file + 1 >= cursor->vtab->query->nr_files)
			return SQL_OK;
		cursor->file++;
		int ret = begin_file(cursor);

		if (ret)
			return ret;
	}
}

static int filter(struct sql_cursor *base, int number, const char *text, int argc,
		  struct sqlite3_value **argv)
{
	struct cursor *cursor = (struct cursor *)base;
	int ret;

	(void)number;
	(void)text;
	free(cursor->kind);
	cursor->kind = NULL;
	if (argc && kb_sql.value_type(argv[0]) == SQL_TEXT) {
		cursor->kind = strdup((const char *)kb_sql.value_text(argv[0]));
		if (!cursor->kind)
			return SQL_NOMEM;
	}
	cursor->file = 0;
	cursor->number = 0;
	ret = begin_file(cursor);
	return ret ? ret : find_line(cursor);
}

static int next(struct sql_cursor *base)
{
	return find_line((struct cursor *)base);
}

static int eof(struct sql_cursor *base)
{
	return !((struct cursor *)base)->line;
}

static int column(struct sql_cursor *base, struct sqlite3_context *context, int i)
{
	const struct cursor *cursor = (const struct cursor *)base;
	size_t length;
	const char *kind;

	if (i == 0) {
		query_put_i64(context, cursor->file + 1);
	} else if (i == 1) {
		kind = kind_of(cursor, &length);
		query_put_copy(context, kind, length);
	} else {
		query_put_copy(context, cursor->line, cursor->length);
	}
	return SQL_OK;
}

static int rowid(struct sql_cursor *base, long long *id)
{
	*id = ((struct cursor *)base)->number;
	return SQL_OK;
}

static const struct sql_module module = {
	.connect = connect_lines,
	.best_index = best_index,
	.disconnect = query_disconnect,
	.open = open_cursor,
	.close = close_cursor,
	.filter = filter,
	.next = next,
	.eof = eof,
	.column = column,
	.rowid = rowid,
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
	struct aux *aux = query->make_lines ? calloc(KB_QUERY_LINES, sizeof(*aux)) : NULL;
	int ret = 0;

	if (!query->make_lines)
		return 0;
	if (!aux)
		return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
	query->lines_aux = aux;
	for (unsigned int i = 0; i < KB_QUERY_LINES && !ret; i++, aux++) {
		*aux = (struct aux){ .query = query, .which = (enum kb_query_lines)i };
		ret = query_add_module(query, lines[i].name, COLUMNS, lines[i].what, &module, aux, err);
	}
	for (size_t i = 0; i < ARRAY_SIZE(kinds) && !ret; i++)
		ret = add_view(query, &kinds[i], err);
	return ret;
}
