// SPDX-License-Identifier: MIT
/*
 * The report for people, in the format of perf report: lines that begin with '#' describe the lines
 * below them. Names come from files and must not control the terminal.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/utf8.h"
#include "cli.h"
#include "base/percent.h"
#include "report_print.h"

#define WIDEST		48	/* limit of a column; a longer name moves the rest of its line */

/* Prints @text and blanks up to @width. */
static void put_padded(const char *text, size_t length, int width)
{
	char shown[4];
	size_t taken, size;
	int columns;

	for (columns = 0; length; columns++) {
		taken = 1;
		if (kb_utf8_is_plain(*text)) {
			putchar(*text);
		} else {
			size = kb_utf8_shown_next(shown, text, length, &taken);
			fwrite(shown, 1, size, stdout);
		}
		text += taken;
		length -= taken;
	}
	for (; columns < width; columns++)
		putchar(' ');
}

static void put(const char *text, int width)
{
	put_padded(text, strlen(text), width);
}

static int wider(int width, const char *text)
{
	int length = strnlen(text, WIDEST);

	return length > width ? length : width;
}

/* Prints "  12.34%" with this width, and in a colour if colours are on. */
static void put_share(uint64_t part, uint64_t whole, int width)
{
	const char *color = cli_share_color(stdout, kb_percent(part, whole));

	printf("%s%*.2f%%%s", color ? color : "", width, kb_percent(part, whole),
	       color ? CLI_COLOR_END : "");
}

static double ms(uint64_t ns)
{
	return ns / 1e6;
}

static void put_head_line(const char *name, const char *text)
{
	if (!text || !*text)
		return;
	printf("# %-9s: ", name);
	put(text, 0);
	putchar('\n');
}

static void put_time(const struct report *report)
{
	time_t seconds = report->header->unix_base_ns / 1000000000;
	char text[64] = "";
	struct tm tm;

	if (report->header->unix_base_ns && gmtime_r(&seconds, &tm))
		strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S UTC, ", &tm);
	printf("# recorded : %s%.6f s, %u CPU%s\n", text, report->got->duration_ns / 1e9,
	       report->got->nr_cores, report->got->nr_cores == 1 ? "" : "s");
}

static void put_clock(const struct report *report)
{
	const struct kb_header *header = report->header;

	if (!header->timestamp_multiplier || !header->timestamp_divisor)
		return;
	printf("# clock    : %.6f MHz", 1e3 * header->timestamp_divisor /
	       header->timestamp_multiplier);
	if (kb_barman_fact(report->barman, "raw_base"))
		printf(", 0 = %s ns of CLOCK_MONOTONIC_RAW",
		       kb_barman_fact(report->barman, "raw_base"));
	putchar('\n');
}

static void put_sleeps(const struct report *report)
{
	const char *asleep = kb_barman_fact(report->barman, "asleep");
	unsigned int times;
	uint64_t ns;

	if (asleep && sscanf(asleep, "%u,%" SCNu64, &times, &ns) == 2)
		printf("# asleep   : %u time%s; CLOCK_MONOTONIC_RAW stood still for %.6f s of the above\n",
		       times, times == 1 ? "" : "s", ns / 1e9);
}

static void put_unsteady(const struct report *report)
{
	if (kb_barman_fact(report->barman, "clock_unsteady"))
		puts("# clock    : during the recording the kernel found the CPU's counter (TSC) "
		     "unstable; times may be wrong");
}

static void put_events(const struct report *report)
{
	uint32_t i, nr = kb_names_nr_counters(report->names);
	const char *fallback = kb_barman_fact(report->barman, "fallback");

	printf("# events   : ");
	for (i = 0; i < nr; i++) {
		struct kb_text name = kb_names_counter(report->names, i);

		printf("%s", i ? ", " : "");
		put_padded(name.data, name.length, 0);
	}
	printf("%s", nr ? "" : "none");
	if (fallback) {
		printf(" (there was no PMU: sampled by ");
		put(fallback, 0);
		putchar(')');
	}
	putchar('\n');
}

static void put_head(const struct report *report)
{
	const char *host = kb_barman_fact(report->barman, "host");
	const char *filter = kb_barman_fact(report->barman, "filter");
	const uint64_t *events = report->got->events;

	put_head_line("capture", report->path);
	put_head_line("host", host ? host : report->header->target_name);
	put_head_line("release", kb_barman_fact(report->barman, "release"));
	put_head_line("command", kb_barman_fact(report->barman, "command"));
	if (filter && strcmp(filter, "none") != 0)
		put_head_line("filter", filter);
	put_time(report);
	put_clock(report);
	put_sleeps(report);
	put_unsteady(report);
	put_events(report);
	printf("# records  : %" PRIu64 ": %" PRIu64 " samples, %" PRIu64 " switches, %" PRIu64
	       " halts, %" PRIu64 " others\n", report->got->records, events[KB_EVENT_SAMPLE],
	       events[KB_EVENT_TASK_SWITCH], events[KB_EVENT_HALT],
	       report->got->records - events[KB_EVENT_SAMPLE] - events[KB_EVENT_TASK_SWITCH] -
	       events[KB_EVENT_HALT]);
}

/* Prints what is missing from the capture and what to do. Always prints a line. */
static void put_losses(const struct report *report)
{
	const struct kb_losses *losses = report->got->losses;
	uint64_t gaps = 0;
	uint32_t i;

	for (i = 0; i < report->header->max_cores; i++)
		gaps += report->got->cpus[i].lost;
	if (!losses->stated && !gaps)
		printf("# lost     : the capture does not say\n");
	else
		printf("# lost     : %" PRIu64 " records\n", losses->stated ? losses->lost : gaps);
	for (i = 0; i < losses->nr_rows; i++)
		if (losses->rows[i].count)
			printf("#            CPU %u: %" PRIu64 " (%s): %s\n", losses->rows[i].core,
			       losses->rows[i].count, losses->rows[i].what,
			       kb_loss_advice(losses->rows[i].what));
	if (losses->overwritten)
		printf("#            %" PRIu64 " older records were overwritten by newer ones\n",
		       losses->overwritten);
	for (i = 0; i < losses->nr_missed; i++)
		if (losses->missed[i].count)
			printf("#            missed %" PRIu64 " (%s): %s\n", losses->missed[i].count,
			       losses->missed[i].what, kb_loss_advice(losses->missed[i].what));
}

static double seconds_since_start(const struct report *report, int64_t ns)
{
	return ((uint64_t)ns - (uint64_t)kb_trace_first(report->trace)) / 1e9;
}

/* Prints where counters stood still, and what this means for the numbers below. */
static void put_stops(const struct report *report)
{
	uint32_t i;

	for (i = 0; i < report->got->nr_stops; i++) {
		const struct kb_stop *stop = &report->got->stops[i];

		printf("# %-9s%c CPU %u: %" PRIu64 " time%s (%s)", i ? "" : "stopped", i ? ' ' : ':',
		       stop->core, stop->times, stop->times == 1 ? "" : "s", stop->reason);
		if (stop->ns)
			printf(", %.3f ms at most, from %.6f s to %.6f s", ms(stop->ns),
			       seconds_since_start(report, stop->first),
			       seconds_since_start(report, stop->last));
		printf(": %s\n", kb_stop_advice(stop->reason));
	}
	if (report->got->totals.partial && kb_report_ipc(report->got, NULL, NULL, NULL))
		printf("#            IPC leaves out %" PRIu64 " of %" PRIu64 " samples: their "
		       "counters did not all run at the same time\n", report->got->totals.partial,
		       report->got->totals.samples);
}

static void put_title(const char *title)
{
	printf("#\n# %s\n#\n", title);
}

static bool is_shown(const struct report *report, uint64_t part, uint64_t whole)
{
	return kb_percent(part, whole) >= report->percent_limit;
}

/*
 * Sums up the rows of a table that are below the limit. @rows is the first of them, @all the weight
 * of the whole table.
 */
static void put_rest(const struct report *report, const struct kb_sample_row *rows, uint32_t nr,
		     uint64_t all)
{
	uint64_t rest = 0;
	uint32_t i;

	for (i = 0; i < nr; i++)
		rest += rows[i].weight;
	if (nr)
		printf("# %8.2f%%  in %u more row%s below %g%%: --percent-limit 0 shows all\n",
		       kb_percent(rest, all), nr, nr == 1 ? "" : "s",
		       report->percent_limit);
}

/* Prints the share of the idle loop, which the tables leave out. */
static void put_idle_loop(const struct report *report)
{
	if (report->got->idle_samples)
		printf("# Idle loop: %.2f%%, %" PRIu64 " samples; the tables leave them out, "
		       "--idle lists them\n",
		       kb_percent(report->got->idle_weight, report->got->totals.weight),
		       report->got->idle_samples);
}

static void put_weight(const struct report *report)
{
	struct kb_text weight = report->got->weight_of;

	printf("#\n# Samples: %" PRIu64 ", ", report->got->totals.samples);
	if (report->filter) {
		printf("only those of ");
		put(report->filter, 0);
		printf(" (%" PRIu64 " others), ", report->got->filtered);
	}
	if (report->how.count || report->got->totals.weight == report->got->totals.samples) {
		printf("counted\n");
	} else {
		printf("weighed by ");
		put_padded(weight.data, weight.length, 0);
		printf(": %" PRIu64 "\n", report->got->totals.weight);
	}
	put_idle_loop(report);
	printf("#\n");
}

/* The columns of the table of samples, and the widths of columns with names. */
struct columns {
	bool children, cpu, tid, task, image, symbol, line;
	int task_width, image_width, line_width;
};

#define COUNTER_WIDTH	14	/* width of a column; longer names are cut */

/* The columns of counters, if @all are wanted, and of IPC. */
static void put_counter_heads(const struct report *report, bool all)
{
	uint32_t i, nr = all ? kb_names_nr_counters(report->names) : 0;

	for (i = 0; i < nr; i++) {
		struct kb_text name = kb_names_counter(report->names, i);
		int length = name.length < COUNTER_WIDTH ? name.length : COUNTER_WIDTH;

		printf("  %*s", COUNTER_WIDTH - length, "");
		put_padded(name.data, length, 0);
	}
	if (kb_report_ipc(report->got, NULL, NULL, NULL))
		printf("    IPC");
}

static void put_counters(const struct report *report, const struct kb_sample_table *table,
			 const struct kb_sample_row *row, bool all)
{
	uint32_t i, nr = all ? kb_names_nr_counters(report->names) : 0;
	double ipc;

	for (i = 0; i < nr; i++)
		printf("  %*" PRIu64, COUNTER_WIDTH, kb_report_counter(table, row, i));
	if (!kb_report_ipc(report->got, table, row, &ipc))
		return;
	if (isnan(ipc))
		printf("      -");
	else
		printf("  %5.2f", ipc);
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

static struct columns choose_columns(const struct report *report, uint32_t shown)
{
	struct columns columns = {
		.children = report->how.children,
		.cpu = report->how.sort & KB_SORT_CPU,
		.tid = report->how.sort & KB_SORT_TID,
		.task = report->how.sort & (KB_SORT_TASK | KB_SORT_TID),
		.image = report->how.sort & (KB_SORT_IMAGE | KB_SORT_SYMBOL | KB_SORT_LINE),
		.symbol = report->how.sort & KB_SORT_SYMBOL,
		.line = report->how.sort & KB_SORT_LINE,
		.task_width = 4,
		.image_width = 5,
		.line_width = 4,
	};
	char line[LINE_BUFFER];
	uint32_t i;

	for (i = 0; i < shown; i++) {
		columns.task_width = wider(columns.task_width, report->got->samples.rows[i].task);
		columns.image_width = wider(columns.image_width, report->got->samples.rows[i].image_base);
		columns.line_width = wider(columns.line_width, line_of(&report->got->samples.rows[i], line));
	}
	return columns;
}

static void put_symbols_head(const struct report *report, const struct columns *columns)
{
	if (columns->children)
		printf("#  Children       Self   Samples");
	else
		printf("#  Overhead   Samples");
	put_counter_heads(report, report->counters);
	if (columns->cpu)
		printf("  CPU");
	if (columns->tid)
		printf("      TID");
	if (columns->task)
		printf("  %-*s", columns->image ? columns->task_width : 0, "Task");
	if (columns->image)
		printf("  %-*s", columns->symbol || columns->line ? columns->image_width : 0, "Image");
	if (columns->line)
		printf("  %-*s", columns->symbol ? columns->line_width : 0, "Line");
	printf("%s\n#\n", columns->symbol ? "  Symbol" : "");
}

static void put_symbol_row(const struct report *report, const struct columns *columns,
			   const struct kb_sample_row *row)
{
	char line[LINE_BUFFER];

	if (columns->children)
		put_share(row->children, report->got->totals.weight, 10);
	put_share(row->weight, report->got->totals.weight, 10);
	printf("  %8" PRIu64, row->samples);
	put_counters(report, &report->got->samples, row, report->counters);
	if (columns->cpu)
		printf("  %3u", row->core);
	if (columns->tid)
		printf("  %7u", row->task_id);
	if (columns->task) {
		printf("  ");
		put(row->task, columns->image ? columns->task_width : 0);
	}
	if (columns->image) {
		printf("  ");
		put(row->image_base, columns->symbol || columns->line ? columns->image_width : 0);
	}
	if (columns->line) {
		printf("  ");
		put(line_of(row, line), columns->symbol ? columns->line_width : 0);
	}
	if (columns->symbol) {
		printf("  [%c] ", row->kernel ? 'k' : '.');
		put(row->symbol[0] ? row->symbol : "[unknown]", 0);
		if (row->inlined)
			printf(" (inlined)");
	}
	putchar('\n');
}

static void put_symbols(const struct report *report)
{
	struct columns columns;
	uint32_t i, shown = 0;

	while (shown < report->got->samples.nr_work &&
	       is_shown(report, report->got->samples.rows[shown].children, report->got->totals.weight))
		shown++;
	columns = choose_columns(report, shown);
	put_symbols_head(report, &columns);
	for (i = 0; i < shown; i++)
		put_symbol_row(report, &columns, &report->got->samples.rows[i]);
	put_rest(report, report->got->samples.rows + shown, report->got->samples.nr_work - shown,
		 report->got->totals.weight);
}

/* Prints "PID  TID  NAME" and the end of the line. */
static void put_task_name(const struct report *report, uint32_t task_id, uint64_t timestamp)
{
	char buffer[KB_TASK_NAME_BUFFER];
	struct kb_task_hit hit;

	kb_tasks_find(report->tasks, task_id, timestamp, &hit);
	printf("  %7u  %7u  ", hit.tgid, task_id);
	put(kb_tasks_name(report->tasks, task_id, timestamp, buffer), 0);
	putchar('\n');
}

static void put_task_samples(const struct report *report)
{
	uint32_t i;

	put_title("Samples by task");
	printf("#  Overhead   Samples");
	put_counter_heads(report, report->counters);
	printf("      PID      TID  Task\n#\n");
	for (i = 0; i < report->got->tasks.nr_work; i++) {
		const struct kb_sample_row *row = &report->got->tasks.rows[i];

		if (!is_shown(report, row->weight, report->got->totals.weight))
			break;
		put_share(row->weight, report->got->totals.weight, 10);
		printf("  %8" PRIu64, row->samples);
		put_counters(report, &report->got->tasks, row, report->counters);
		put_task_name(report, row->task_id, report->got->last_timestamp);
	}
	put_rest(report, report->got->tasks.rows + i, report->got->tasks.nr_work - i,
		 report->got->totals.weight);
}

/* All that the counters counted in a task: they were read at switches, or periodically. */
static void put_task_counts(const struct report *report)
{
	uint64_t all = 0;
	uint32_t i;

	put_title("Counters by task");
	for (i = 0; i < report->got->counts.nr; i++)
		all += report->got->counts.rows[i].weight;
	printf("#   Share");
	put_counter_heads(report, true);
	printf("      PID      TID  Task\n#\n");
	for (i = 0; i < report->got->counts.nr; i++) {
		const struct kb_sample_row *row = &report->got->counts.rows[i];

		if (!is_shown(report, row->weight, all))
			break;
		put_share(row->weight, all, 9);
		put_counters(report, &report->got->counts, row, true);
		put_task_name(report, row->task_id, report->got->last_timestamp);
	}
	put_rest(report, report->got->counts.rows + i, report->got->counts.nr - i, all);
}

/*
 * "Run %" is relative to the recorded time on one CPU. A preempted task could run and waits for a
 * CPU; a blocked task waits for something else.
 */
static void put_task_times(const struct report *report)
{
	uint32_t i;

	put_title("Scheduling by task (times in ms)");
	printf("#  Run %%         Run     Runs  Preempted      waited  Blocked      waited"
	       "  Longest wait      PID      TID  Task\n#\n");
	for (i = 0; i < report->got->nr_sched_tasks; i++) {
		const struct kb_sched_task *task = &report->got->sched_tasks[i];

		if (!is_shown(report, task->run_ns, report->got->duration_ns))
			break;
		printf("%7.2f%%  %10.3f  %7" PRIu64 "  %9" PRIu64 "  %10.3f  %7" PRIu64
		       "  %10.3f  %10.3f %s", kb_percent(task->run_ns, report->got->duration_ns),
		       ms(task->run_ns), task->runs, task->preempted, ms(task->preempted_ns),
		       task->blocked, ms(task->blocked_ns), ms(task->longest_ns),
		       !task->longest_ns ? "-" : task->longest_asleep ? "s" :
		       task->longest_blocked ? "b" : "p");
		put_task_name(report, task->key, task->last_seen);
	}
	if (i < report->got->nr_sched_tasks)
		printf("# %u more task%s ran less than %g%%: --percent-limit 0 shows all\n",
		       report->got->nr_sched_tasks - i, report->got->nr_sched_tasks - i == 1 ? "" : "s",
		       report->percent_limit);
}

static void put_cpus(const struct report *report)
{
	bool lost = false;
	uint32_t i;

	for (i = 0; i < report->header->max_cores; i++)
		lost |= report->got->cpus[i].lost_ns != 0;
	put_title("CPUs (times in ms)");
	printf("#  CPU  Switches         Busy      %%  Idle, awake      %%       Halted      %%"
	       "%s\n#\n", lost ? "      Unknown" : "");
	for (i = 0; i < report->header->max_cores; i++) {
		const struct kb_sched_cpu *cpu = &report->got->cpus[i];
		uint64_t all = cpu->busy_ns + cpu->awake_ns + cpu->halted_ns + cpu->lost_ns;

		if (!cpu->seen)
			continue;
		printf("   %3u  %8" PRIu64 "  %11.3f %5.1f%%  %11.3f %5.1f%%  %11.3f %5.1f%%", i,
		       cpu->switches, ms(cpu->busy_ns), kb_percent(cpu->busy_ns, all),
		       ms(cpu->awake_ns), kb_percent(cpu->awake_ns, all), ms(cpu->halted_ns),
		       kb_percent(cpu->halted_ns, all));
		if (lost)
			printf("  %11.3f", ms(cpu->lost_ns));
		putchar('\n');
	}
}

static void put_state(uint32_t core, int state, const struct kb_sched_state *row,
		      uint64_t duration)
{
	char name[16] = "unknown";

	if (state)
		snprintf(name, sizeof(name), "%d", state - 1);
	printf("   %3u  %7s  %8" PRIu64 "  %9.1f  %11.3f %5.1f%%  %10.3f  %10.3f\n", core, name,
	       row->count, duration ? row->count * 1e9 / duration : 0, ms(row->ns),
	       kb_percent(row->ns, duration), ms(row->ns) / row->count, ms(row->longest_ns));
}

static void put_idle(const struct report *report)
{
	uint32_t i;
	int state;

	put_title("Idle states (times in ms)");
	printf("#  CPU    State     Count   Per sec.         Time      %%        Mean"
	       "     Longest\n#\n");
	for (i = 0; i < report->header->max_cores; i++) {
		const struct kb_sched_cpu *cpu = &report->got->cpus[i];

		for (state = 0; cpu->states && state < KB_SCHED_STATES; state++)
			if (cpu->states[state].count)
				put_state(i, state, &cpu->states[state], report->got->duration_ns);
	}
}

/* Prints callers above the functions that they call. A share includes all functions below. */
static void put_tree(const struct report *report, const struct kb_call_tree *tree, bool times)
{
	uint64_t all = tree->nodes[KB_CALLTREE_ROOT].total;
	char label[512];
	uint32_t i;

	put_title(times ? "Waiting, callers first (times in ms)" : "Calls, callers first");
	printf("#     Total       Self  %sTask, and below it functions\n#\n",
	       times ? "      Time  " : "");
	for (i = 1; i < tree->nr; i++) {
		const struct kb_calltree_node *node = &tree->nodes[tree->order[i]];

		if (!node->total || !is_shown(report, node->total, all))
			continue;
		kb_calltree_label(node, label, sizeof(label));
		put_share(node->total, all, 10);
		printf(" ");
		put_share(node->self, all, 9);
		printf("  ");
		if (times)
			printf("%10.3f  ", ms(node->total));
		printf("%*s", 2 * (int)(node->depth - 1), "");
		put(label, 0);
		printf("%s%s\n", node->kernel ? " [k]" : "", node->inlined ? " (inlined)" : "");
	}
}

#define WAITS		10	/* shown waits */
#define WAIT_FRAMES	24	/* shown frames of each wait */

/* Prints the functions in which the task waited, innermost first. */
static void put_wait_stack(const struct kb_call_tree *tree, uint32_t i)
{
	const struct kb_calltree_node *node = &tree->nodes[i];
	unsigned int frames = 0;
	char label[512];

	for (; node->depth > 1 && frames < WAIT_FRAMES; node = &tree->nodes[node->parent]) {
		if (!node->image_base[0])
			continue;	/* the node of the reason, which is printed already */
		kb_calltree_label(node, label, sizeof(label));
		printf("%16s", "");
		put(label, 0);
		printf("%s\n", node->kernel ? " [k]" : "");
		frames++;
	}
	if (node->depth > 1)
		printf("%16s(%u more)\n", "", node->depth - 1);
}

static void put_waits(const struct report *report, const char *title, const struct kb_wait *waits,
		      uint32_t nr)
{
	uint32_t i;

	if (!nr)
		return;
	put_title(title);
	printf("#       Wait         Since  Why            PID      TID  Task\n#\n");
	for (i = 0; i < nr && i < WAITS; i++) {
		const struct kb_wait *wait = &waits[i];

		printf("%12.3f  %12.3f  %-9s", ms(wait->ns),
		       ms((uint64_t)wait->since - (uint64_t)kb_trace_first(report->trace)),
		       wait->asleep ? "asleep" : wait->blocked ? "blocked" : "preempted");
		put_task_name(report, wait->task_id, wait->ticks);
		put_wait_stack(&report->got->waiting, wait->mark);
	}
}

void report_print_text(const struct report *report)
{
	put_head(report);
	put_losses(report);
	put_stops(report);
	if (report->got->totals.samples || report->got->filtered) {
		put_weight(report);
		put_symbols(report);
		put_task_samples(report);
		if (report->got->calls.nodes)
			put_tree(report, &report->got->calls, false);
	} else {
		put_title("No samples with an address");
	}
	if (report->got->counts.hot)
		put_task_counts(report);
	if (report->got->events[KB_EVENT_TASK_SWITCH]) {
		put_task_times(report);
		put_waits(report, "Longest waits (times in ms since the beginning)", report->got->waits,
			  report->got->nr_waits);
		put_waits(report, "Longest sleeps, until an event or a time (times in ms since the "
			  "beginning)", report->got->sleeps, report->got->nr_sleeps);
		if (report->got->calls.nodes && report->got->waiting_has_chains)
			put_tree(report, &report->got->waiting, true);
		put_cpus(report);
	} else {
		put_title("No task switches");
	}
	if (report->got->events[KB_EVENT_HALT])
		put_idle(report);
	else
		put_title("No idling");
}
