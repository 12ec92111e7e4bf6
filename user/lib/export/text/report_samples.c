// SPDX-License-Identifier: MIT
/* The tables of a report that add up samples: by what the options say, and by task. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/percent.h"
#include "export/text/report_parts.h"

/*
 * Prints the share of @nr rows that are below the limit, @rest of the weight @all of a whole table.
 * They are not read: it takes time to put them in order.
 */
static void put_rest(const struct report_text *report, uint32_t nr, uint64_t rest, uint64_t all)
{
	if (nr)
		text_printf(report,
			    "# %8.2f%%  in %u more row%s below %g%%: --percent-limit 0 shows all\n",
			    kb_percent(rest, all), nr, nr == 1 ? "" : "s",
			    report->options.percent_limit);
}

/* Prints the share of the idle loop, which the tables leave out. */
static void put_idle_loop(const struct report_text *report)
{
	if (report->got->idle_samples)
		text_printf(report,
			    "# Idle loop: %.2f%%, %" PRIu64 " samples; the tables leave them out, "
			    "--idle lists them\n",
			    kb_percent(report->got->idle_weight, report->got->totals.weight),
			    report->got->idle_samples);
}

void text_put_weight(const struct report_text *report)
{
	struct kb_text weight = report->got->weight_of;

	text_printf(report, "#\n# Samples: %" PRIu64 ", ", report->got->totals.samples);
	if (report->options.filter) {
		text_printf(report, "only those of ");
		text_put(report, report->options.filter, 0);
		text_printf(report, " (%" PRIu64 " others), ", report->got->filtered);
	}
	if (report->how->count || report->got->totals.weight == report->got->totals.samples) {
		text_printf(report, "counted\n");
	} else {
		text_printf(report, "weighed by ");
		text_put_padded(report, weight.data, weight.length, 0);
		text_printf(report, ": %" PRIu64 "\n", report->got->totals.weight);
	}
	put_idle_loop(report);
	text_printf(report, "#\n");
}

#define WIDEST		48	/* limit of a column; a longer name moves the rest of its line */

static int wider(int width, const char *text)
{
	int length = strnlen(text, WIDEST);

	return length > width ? length : width;
}

/* The columns of the table of samples, and the widths of columns with names. */
struct columns {
	bool children, cpu, pid, tid, mode, cgroup, task, image, symbol, line;
	int cgroup_width, task_width, image_width, line_width;
};

#define COUNTER_WIDTH	14	/* width of a column; longer names are cut */

static int metric_width(const struct kb_report_metric *metric)
{
	int length = (int)strlen(metric->name);

	return length > 7 ? length : 7;
}

/* Which counters a table shows. Those that take turns have values in the table of tasks only. */
enum shown_counters { NO_COUNTERS, STEADY_COUNTERS, ALL_COUNTERS };

static bool is_shown(const struct report_text *report, enum shown_counters which, uint32_t id)
{
	return which == ALL_COUNTERS ||
	       (which == STEADY_COUNTERS && !kb_report_is_rotated(report->got, id));
}

static bool is_metric_shown(const struct report_text *report, enum shown_counters which,
			    const struct kb_report_metric *metric)
{
	return which == ALL_COUNTERS || !kb_report_metric_is_rotated(report->got, metric);
}

static enum shown_counters counters_of_samples(const struct report_text *report)
{
	return report->options.counters ? STEADY_COUNTERS : NO_COUNTERS;
}

#define ERROR_HEAD	"   error  time"	/* of a counter that takes turns */
#define BOUNDS_HEAD	"  from      to     "

/* The columns of counters and of metrics: of IPC, if none were asked for. */
static void put_counter_heads(const struct report_text *report, enum shown_counters which)
{
	uint32_t i, nr = kb_names_nr_counters(report->names);

	for (i = 0; i < nr; i++) {
		struct kb_text name = kb_names_counter(report->names, i);
		int length = name.length < COUNTER_WIDTH ? name.length : COUNTER_WIDTH;

		if (!is_shown(report, which, i))
			continue;
		text_printf(report, "  %*s", COUNTER_WIDTH - length, "");
		text_put_padded(report, name.data, length, 0);
		if (kb_report_is_rotated(report->got, i))
			text_printf(report, ERROR_HEAD);
	}
	for (i = 0; i < report->nr_metrics; i++) {
		int length = (int)strlen(report->metrics[i].name);

		if (!is_metric_shown(report, which, &report->metrics[i]))
			continue;
		text_printf(report, "  %*s", metric_width(&report->metrics[i]) - length, "");
		text_put(report, report->metrics[i].name, 0);
		if (kb_report_metric_is_rotated(report->got, &report->metrics[i]))
			text_printf(report, BOUNDS_HEAD);
	}
	if (!report->options.metrics && kb_report_ipc(report->got, NULL, NULL, NULL))
		text_printf(report, "    IPC");
}

static void put_metrics(const struct report_text *report, const struct kb_sample_table *table,
			const struct kb_sample_row *row, enum shown_counters which)
{
	for (unsigned int i = 0; i < report->nr_metrics; i++) {
		const struct kb_report_metric *metric = &report->metrics[i];
		bool rotated = kb_report_metric_is_rotated(report->got, metric), known;
		struct kb_metric_value value;
		char text[32];

		if (!is_metric_shown(report, which, metric))
			continue;
		known = !kb_report_metric_bounds(report->got, metric, table, row, &value);
		text_printf(report, "  %*s", metric_width(metric), !known ? "-" :
			    kb_metric_text(metric->metric, value.value, text));
		if (!rotated)
			continue;
		text_printf(report, "  %-8s", !known ? "-" :
			    kb_metric_text(metric->metric, value.low, text));
		text_printf(report, "  %-7s", !known ? "-" :
			    kb_metric_text(metric->metric, value.high, text));
	}
}

/* A count of turns, how far off it may be, and for which part of the time it was counted. */
static void put_rotated(const struct report_text *report, const struct kb_sample_row *row,
			uint32_t id)
{
	struct kb_report_count count = kb_report_rotated(report->got, row, id);

	if (isnan(count.value))
		text_printf(report, "  %*s  %6s  %4s", COUNTER_WIDTH, "-", "-", "0%");
	else if (isinf(count.error) || !(count.value > 0))
		text_printf(report, "  %*.0f  %6s  %3.0f%%", COUNTER_WIDTH, count.value, "-",
			    100 * count.part);
	else
		text_printf(report, "  %*.0f  %5.1f%%  %3.0f%%", COUNTER_WIDTH, count.value,
			    100 * count.error / count.value, 100 * count.part);
}

static void put_counters(const struct report_text *report, const struct kb_sample_table *table,
			 const struct kb_sample_row *row, enum shown_counters which)
{
	uint32_t i, nr = kb_names_nr_counters(report->names);
	double ipc;

	for (i = 0; i < nr; i++) {
		if (!is_shown(report, which, i))
			continue;
		if (kb_report_is_rotated(report->got, i))
			put_rotated(report, row, i);
		else
			text_printf(report, "  %*" PRIu64, COUNTER_WIDTH,
				    kb_report_counter(table, row, i));
	}
	put_metrics(report, table, row, which);
	if (report->options.metrics || !kb_report_ipc(report->got, table, row, &ipc))
		return;
	if (isnan(ipc))
		text_printf(report, "      -");
	else
		text_printf(report, "  %5.2f", ipc);
}

#define LINE_BUFFER	256

/* "FILE:LINE" without directories, as perf does. */
static const char *line_of(const struct kb_sample_row *row, char buffer[LINE_BUFFER])
{
	const char *slash = strrchr(row->file, '/');

	if (!row->file[0])
		return "[unknown]";
	snprintf(buffer, LINE_BUFFER, "%s:%u", slash ? slash + 1 : row->file, row->line);
	return buffer;
}

static const char *cgroup_of(const struct report_text *report, const struct kb_sample_row *row)
{
	return kb_report_cgroup(&report->got->samples, row) ?: "[unknown]";
}

static struct columns choose_columns(const struct report_text *report, uint32_t shown)
{
	struct columns columns = {
		.children = report->how->children,
		.cpu = report->how->sort & KB_SORT_CPU,
		.pid = report->how->sort & KB_SORT_PID,
		.tid = report->how->sort & KB_SORT_TID,
		.mode = report->how->sort & KB_SORT_MODE,
		.cgroup = report->how->sort & KB_SORT_CGROUP,
		.task = report->how->sort & (KB_SORT_TASK | KB_SORT_PID | KB_SORT_TID),
		.image = report->how->sort & (KB_SORT_IMAGE | KB_SORT_SYMBOL | KB_SORT_LINE),
		.symbol = report->how->sort & KB_SORT_SYMBOL,
		.line = report->how->sort & KB_SORT_LINE,
		.cgroup_width = 6,
		.task_width = 4,
		.image_width = 5,
		.line_width = 4,
	};
	char line[LINE_BUFFER];
	uint32_t i;

	for (i = 0; i < shown; i++) {
		const struct kb_sample_row row = kb_report_sample(&report->got->samples, i);

		columns.cgroup_width = wider(columns.cgroup_width, cgroup_of(report, &row));
		columns.task_width = wider(columns.task_width, row.task);
		columns.image_width = wider(columns.image_width, row.image_base);
		columns.line_width = wider(columns.line_width, line_of(&row, line));
	}
	return columns;
}

/* A capture without cgroups says why. */
static void put_no_cgroups(const struct report_text *report)
{
	const struct kb_process_notes *notes = kb_trace_notes(report->trace, NULL);

	if (notes && !kb_process_notes_have_cgroups(notes))
		text_printf(report, "# The capture has no cgroups: 'kbarman record' notes them, but not in a PID "
				    "namespace;\n# kbarmand does so with 'labels = yes'\n#\n");
}

static void put_symbols_head(const struct report_text *report, const struct columns *columns)
{
	if (columns->cgroup)
		put_no_cgroups(report);
	if (columns->children)
		text_printf(report, "#  Children       Self   Samples");
	else
		text_printf(report, "#  Overhead   Samples");
	put_counter_heads(report, counters_of_samples(report));
	if (columns->cpu)
		text_printf(report, "  CPU");
	if (columns->pid)
		text_printf(report, "      PID");
	if (columns->tid)
		text_printf(report, "      TID");
	if (columns->mode)
		text_printf(report, "  %-*s",
			    columns->cgroup || columns->task || columns->image ? 6 : 0, "Mode");
	if (columns->cgroup)
		text_printf(report, "  %-*s",
			    columns->task || columns->image ? columns->cgroup_width : 0, "Cgroup");
	if (columns->task)
		text_printf(report, "  %-*s", columns->image ? columns->task_width : 0, "Task");
	if (columns->image)
		text_printf(report, "  %-*s",
			    columns->symbol || columns->line ? columns->image_width : 0, "Image");
	if (columns->line)
		text_printf(report, "  %-*s", columns->symbol ? columns->line_width : 0, "Line");
	text_printf(report, "%s\n#\n", columns->symbol ? "  Symbol" : "");
}

static void put_symbol_row(const struct report_text *report, const struct columns *columns,
			   const struct kb_sample_row *row)
{
	char line[LINE_BUFFER];

	if (columns->children)
		text_put_share(report, row->children, report->got->totals.weight, 10);
	text_put_share(report, row->weight, report->got->totals.weight, 10);
	text_printf(report, "  %8" PRIu64, row->samples);
	put_counters(report, &report->got->samples, row, counters_of_samples(report));
	if (columns->cpu)
		text_printf(report, "  %3u", row->core);
	if (columns->pid)
		text_printf(report, "  %7u", row->pid);
	if (columns->tid)
		text_printf(report, "  %7u", row->task_id);
	if (columns->mode)
		text_printf(report, "  %-*s",
			    columns->cgroup || columns->task || columns->image ? 6 : 0,
			    row->kernel ? "kernel" : "user");
	if (columns->cgroup) {
		text_printf(report, "  ");
		text_put(report, cgroup_of(report, row),
			 columns->task || columns->image ? columns->cgroup_width : 0);
	}
	if (columns->task) {
		text_printf(report, "  ");
		text_put(report, row->task, columns->image ? columns->task_width : 0);
	}
	if (columns->image) {
		text_printf(report, "  ");
		text_put(report, row->image_base,
			 columns->symbol || columns->line ? columns->image_width : 0);
	}
	if (columns->line) {
		text_printf(report, "  ");
		text_put(report, line_of(row, line), columns->symbol ? columns->line_width : 0);
	}
	if (columns->symbol) {
		text_printf(report, "  [%c] ", row->kernel ? 'k' : '.');
		text_put(report, row->symbol[0] ? row->symbol : "[unknown]", 0);
		if (row->inlined)
			text_printf(report, " (inlined)");
	}
	text_printf(report, "\n");
}

#define NAMESAKES_TASKS	10000	/* of more, nobody says how many have one name */
#define NAMESAKES_LINES	3

/* How many tasks with samples had that name in their first one. */
static uint32_t count_namesakes(const struct report_text *report, const char *name)
{
	const struct kb_sample_table *table = &report->got->tasks;
	uint32_t nr = 0;

	for (uint32_t i = 0; i < table->nr_work; i++)
		nr += !strcmp(kb_report_sample(table, i).task, name);
	return nr;
}

static bool was_before(const struct kb_sample_table *table, uint32_t i, const char *name)
{
	while (i--)
		if (!strcmp(kb_report_sample(table, i).task, name))
			return true;
	return false;
}

/* Rows are by name: who has several processes of one name wants to know it. */
static void put_namesakes(const struct report_text *report, uint32_t shown)
{
	const struct kb_sample_table *table = &report->got->samples;
	unsigned int lines = 0;

	if (!(report->how->sort & KB_SORT_TASK) || report->how->sort & KB_SORT_TID ||
	    report->got->tasks.nr_work > NAMESAKES_TASKS)
		return;
	for (uint32_t i = 0; i < shown && lines < NAMESAKES_LINES; i++) {
		const char *name = kb_report_sample(table, i).task;
		uint32_t nr = was_before(table, i, name) ? 0 : count_namesakes(report, name);

		if (nr < 2)
			continue;
		lines++;
		text_printf(report, "# '");
		text_put(report, name, 0);
		text_printf(report, "' is %" PRIu32 " tasks: --sort tid,image,symbol lists each\n", nr);
	}
}

void text_put_symbols(const struct report_text *report)
{
	const struct kb_sample_table *table = &report->got->samples;
	uint64_t rest = report->got->totals.weight - report->got->idle_weight;
	struct columns columns;
	uint32_t i, shown = 0;

	while (shown < table->nr_work &&
	       text_is_shown(report, kb_report_sample(table, shown).children,
			     report->got->totals.weight))
		shown++;
	columns = choose_columns(report, shown);
	put_symbols_head(report, &columns);
	for (i = 0; i < shown; i++) {
		const struct kb_sample_row row = kb_report_sample(table, i);

		put_symbol_row(report, &columns, &row);
		rest -= row.weight;
	}
	put_rest(report, table->nr_work - shown, rest, report->got->totals.weight);
	put_namesakes(report, shown);
}

void text_put_task_samples(const struct report_text *report)
{
	uint64_t rest = report->got->totals.weight - report->got->idle_weight;
	const struct kb_sample_table *table = &report->got->tasks;
	uint32_t i;

	text_put_chosen(report, "Samples by task", false);
	text_printf(report, "#  Overhead   Samples");
	put_counter_heads(report, counters_of_samples(report));
	text_printf(report, "      PID      TID  Task\n#\n");
	for (i = 0; i < table->nr_work; i++) {
		const struct kb_sample_row row = kb_report_sample(table, i);

		if (!text_is_shown(report, row.weight, report->got->totals.weight))
			break;
		text_put_share(report, row.weight, report->got->totals.weight, 10);
		text_printf(report, "  %8" PRIu64, row.samples);
		put_counters(report, table, &row, counters_of_samples(report));
		text_put_task_command(report, row.task_id, report->got->last_timestamp);
		rest -= row.weight;
	}
	put_rest(report, table->nr_work - i, rest, report->got->totals.weight);
}

/* The sums of the columns; of those that take turns the counts of all tasks together. */
static void put_all_rotated(const struct report_text *report)
{
	const struct kb_sample_table *table = &report->got->counts;

	text_printf(report, "#  100.00%%");
	for (uint32_t i = 0; i < kb_names_nr_counters(report->names); i++) {
		uint64_t sum = 0;

		if (kb_report_is_rotated(report->got, i)) {
			put_rotated(report, NULL, i);
			continue;
		}
		for (uint32_t number = 0; number < table->nr; number++) {
			const struct kb_sample_row row = kb_report_sample(table, number);

			sum += kb_report_counter(table, &row, i);
		}
		text_printf(report, "  %*" PRIu64, COUNTER_WIDTH, sum);
	}
	text_printf(report, "  all tasks\n");
}

/* All that the counters counted in a task: they were read at switches, or periodically. */
void text_put_task_counts(const struct report_text *report)
{
	const struct kb_sample_table *table = &report->got->counts;
	uint64_t all = 0, rest;
	uint32_t i;

	text_put_chosen(report, "Counters by task", false);
	if (kb_report_has_rotated(report->got))
		text_printf(report, "# Of counters that took turns: the count of the whole time, how "
				    "far off it is at most in 95\n# of 100 cases, and for which part "
				    "of the time it was counted.\n#\n");
	for (i = 0; i < table->nr; i++)
		all += kb_report_sample(table, i).weight;
	rest = all;
	text_printf(report, "#   Share");
	put_counter_heads(report, ALL_COUNTERS);
	text_printf(report, "      PID      TID  Task\n#\n");
	for (i = 0; i < table->nr; i++) {
		const struct kb_sample_row row = kb_report_sample(table, i);

		if (!text_is_shown(report, row.weight, all))
			break;
		text_put_share(report, row.weight, all, 9);
		put_counters(report, table, &row, ALL_COUNTERS);
		text_put_task_command(report, row.task_id, report->got->last_timestamp);
		rest -= row.weight;
	}
	put_rest(report, table->nr - i, rest, all);
	if (kb_report_has_rotated(report->got))
		put_all_rotated(report);
}
