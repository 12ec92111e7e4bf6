// SPDX-License-Identifier: MIT
/*
 * kbarman report: reports where time went, which tasks waited, how the CPUs idled, and what is
 * missing. The library makes the report (kbarman/report.h); this verb only says which.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <kbarman/out.h>

#include "base/array.h"
#include "cli/base/cli.h"
#include "cli/base/symbols.h"
#include "cli/report/print.h"

#define PERCENT_LIMIT	0.5	/* default of --percent-limit in reports of their own */

enum {
	OPTION_CHILDREN = 256, OPTION_PERCENT,
	OPTION_LINES, OPTION_INLINE, OPTION_COUNTERS, OPTION_IDLE, OPTION_LATENCY, OPTION_IRQ, OPTION_WAITS, OPTION_CLASSES,
	OPTION_SYSCALLS, OPTION_FAULTS, OPTION_BLOCK, OPTION_PATH, OPTION_REQUEST, OPTION_SLOWEST,
};

static const struct cli_option options[] = {
	{ 'i', "input", "FILE", "the same as the argument FILE" },
	{ 's', "sort", "KEY,...",
	  "add up samples by task, pid, tid, cgroup, image, symbol, line, cpu,\n"
	  "mode (default task,image,symbol)" },
	{ 'n', "samples", NULL, "count samples; without -n each is weighed by its period" },
	{ 'n', "count", NULL, NULL },
	FILTERS_OPTIONS,
	{ OPTION_CHILDREN, "children", NULL,
	  "add to each function what it called; needs call chains" },
	{ OPTION_COUNTERS, "counters", NULL,
	  "show all counters: a column for each, by symbol and by task" },
	{ 'M', "metrics", "METRICS",
	  "show metrics, comma-separated: a column for each for which the capture\n"
	  "has counters; 'kbarman list --metrics' lists them" },
	{ OPTION_IDLE, "idle", NULL, "list the idle loop among the functions" },
	{ OPTION_LINES, "lines", NULL,
	  "with lines of source files: a row for each, as --sort ...,line" },
	{ OPTION_INLINE, "inline", NULL, "treat inlined functions as called ones" },
	{ 'g', "call-graph", NULL, "use call chains, which it needs: also print the tree of calls" },
	{ OPTION_LATENCY, "latency", NULL,
	  "why tasks ran late, from the wakeup on, instead of all this; needs a\n"
	  "capture of 'kbarman record --latency'" },
	{ OPTION_IRQ, "irq", NULL,
	  "instead: what interrupts and softirqs took, and what ended idling" },
	{ OPTION_WAITS, "waits", NULL,
	  "instead: time off the CPU, by what tasks waited for: the call, the\n"
	  "file, the lock" },
	{ OPTION_CLASSES, "classes", NULL,
	  "instead: where each nanosecond of tasks and CPUs went: own code, which\n"
	  "system call, interrupts, waits; best with '--sources\n"
	  "syscalls,faults,irq,softirq,wake'" },
	{ OPTION_SYSCALLS, "syscalls", NULL,
	  "instead: system calls by task and call; needs a capture of 'kbarman\n"
	  "record --sources syscalls'" },
	{ OPTION_FAULTS, "faults", NULL,
	  "instead: page faults by task and function; needs '--sources faults'" },
	{ OPTION_BLOCK, "block", NULL,
	  "instead: requests to disks by task; needs '--sources block'" },
	{ OPTION_PATH, "critical-path", "TASK",
	  "instead: who waited for whom, back from the end of TASK (name or\n"
	  "number), or between two marks: FROM..UNTIL" },
	{ OPTION_REQUEST, "request", "FROM..UNTIL",
	  "instead: what requests waited for, and the critical paths of the slowest\n"
	  "ones; from a mark to the next one of the same task, or from a call to\n"
	  "the next one: 'syscall:read(fd)..syscall:write(fd)'" },
	{ OPTION_SLOWEST, "slowest", "N", "of --request: paths of so many requests (default 5)" },
	{ OPTION_PERCENT, "percent-limit", "N",
	  "leave out rows below N percent (default 0.5; 0 shows all)" },
	SYMBOLS_OPTIONS,
	CLI_COLOR_OPTION,
	{ 'j', "json", NULL, "print JSON, one object per line, and everything" },
	{ 0 },
};

static const struct cli_usage usage = {
	.head =
	"usage: kbarman report [OPTIONS] [FILE]\n"
	"\n"
	"Show where time went in the capture FILE (default kbarman.cap; '-' is standard input):\n"
	"samples by task and by symbol, scheduling, idling, and lost records.\n"
	"\n",
	.options = options,
	.column = 25,
	.tail =
	"\n"
	"Exit status: 0 FILE was read; 1 FILE is damaged, its undamaged part is reported; 2 no\n"
	"report.\n",
};

static bool parse_sort(const char *text, unsigned int *sort)
{
	static const struct {
		const char *name;
		unsigned int key;
	} keys[] = {
		{ "task", KB_SORT_TASK },	{ "comm", KB_SORT_TASK },
		{ "tid", KB_SORT_TID },		{ "image", KB_SORT_IMAGE },
		{ "dso", KB_SORT_IMAGE },	{ "symbol", KB_SORT_SYMBOL },
		{ "sym", KB_SORT_SYMBOL },	{ "cpu", KB_SORT_CPU },
		{ "line", KB_SORT_LINE },	{ "srcline", KB_SORT_LINE },
		{ "pid", KB_SORT_PID },		{ "mode", KB_SORT_MODE },
		{ "cgroup", KB_SORT_CGROUP },
	};
	size_t i, length, nr = ARRAY_SIZE(keys);

	for (*sort = 0; *text; text += length + (text[length] == ',')) {
		length = strcspn(text, ",");
		for (i = 0; i < nr; i++)
			if (strlen(keys[i].name) == length &&
			    memcmp(keys[i].name, text, length) == 0)
				break;
		if (i == nr)
			return false;
		*sort |= keys[i].key;
	}
	return *sort;
}

static bool parse_percent(const char *text, double *percent)
{
	char *end;

	*percent = strtod(text, &end);
	return end != text && *end == '\0' && *percent >= 0 && *percent <= 100;
}

static int open_report(struct report *report)
{
	struct kb_error err = { 0 };
	int ret = report_begin(report) ?:
		  report_take(kb_report_create(&report->got, report->trace, &report->how, &err), &err);

	if (ret)
		return ret;
	/* The report has asked for these, so they are there. */
	report->barman = kb_trace_barman(report->trace);
	report->header = kb_trace_header(report->trace);
	report->tasks = kb_trace_tasks(report->trace, NULL);
	report->names = kb_trace_names(report->trace, NULL);
	return CLI_OK;
}

#define COUNTER_NAME	128

static void copy_counter(const struct report *report, uint32_t id, char name[COUNTER_NAME])
{
	struct kb_text text = kb_names_counter(report->names, id);

	snprintf(name, COUNTER_NAME, "%.*s", (int)text.length, text.data);
}

static bool has_counter(const struct report *report, const char *name)
{
	char counter[COUNTER_NAME];

	for (uint32_t id = 0; id < kb_names_nr_counters(report->names); id++) {
		copy_counter(report, id, counter);
		if (kb_metric_is_event(counter, name))
			return true;
	}
	return false;
}

/* Does the capture say of some PMU how many slots a cycle has? */
static bool has_slots(const struct report *report)
{
	char name[COUNTER_NAME], key[COUNTER_NAME + 8];

	for (uint32_t id = 0; id < kb_names_nr_counters(report->names); id++) {
		copy_counter(report, id, name);
		snprintf(key, sizeof(key), "slots.%.*s", (int)kb_metric_pmu(name), name);
		if (kb_barman_fact(report->barman, key))
			return true;
	}
	return kb_barman_fact(report->barman, "slots");
}

static bool has_counters(const struct report *report, const struct kb_metric *metric)
{
	const char *events[KB_METRIC_EVENTS_MAX];
	char text[512];
	unsigned int nr = kb_metric_events(metric, events, text, sizeof(text));

	for (unsigned int i = 0; i < nr; i++)
		if (!has_counter(report, events[i]))
			return false;
	return true;
}

/* Why is there no @metric? The capture has its counters. */
static const char *why_not(const struct report *report, const struct kb_metric *metric)
{
	if (strstr(metric->formula, "$slots") && !has_slots(report))
		return "the capture does not say how many slots a cycle has";
	if (strstr(metric->formula, "$elapsed") && report->filters.text)
		return "it is that of all samples, and options leave some out";
	return "its counters are of different cores or modes, as cycles:u and instructions are";
}

/* Says why there is no metric of this name. The formulas that have it differ in events. */
static void tell_why(const struct report *report, const char *name)
{
	for (const struct kb_metric *m = kb_metrics_all(); m->name; m++) {
		if (strcmp(m->name, name))
			continue;
		if (has_counters(report, m))
			cli_warn("no '%s': %s", name, why_not(report, m));
		else if (kb_metric_can_be_recorded(m))
			cli_warn("the capture does not have the counters of '%s': record them, for %s",
				 name, m->formula);
		else
			cli_warn("'%s' of an Intel PMU (%s) can't be recorded: count it, by "
				 "'kbarman stat -M %s'", name, m->formula, name);
	}
}

/* Which of the metrics of -M can't be had of this capture? */
static void tell_missing(const struct report *report)
{
	for (const struct kb_metric *m = kb_metrics_all(); m->name; m++) {
		bool found = !kb_metric_is_in(m, report->metrics);

		for (unsigned int i = 0; i < report->nr_metrics && !found; i++)
			found = !strcmp(report->rows[i].metric->name, m->name);
		/* once for rows of one name */
		for (const struct kb_metric *other = kb_metrics_all(); other < m && !found; other++)
			found = !strcmp(other->name, m->name);
		if (!found)
			tell_why(report, m->name);
	}
}

static int choose_metrics(struct report *report)
{
	struct kb_error err;

	if (!report->metrics)
		return 0;
	if (kb_metrics_check(report->metrics, &err))
		return cli_fail("-M %s", kb_error_text(&err));
	report->nr_metrics = kb_report_metrics(report->got, report->metrics, report->rows,
					       REPORT_METRICS_MAX);
	if (strcmp(report->metrics, "all"))
		tell_missing(report);
	return 0;
}

static void close_report(struct report *report)
{
	kb_report_destroy(report->got);
	kb_trace_close(report->trace);
	kb_out_destroy(report->out);
	filters_release(&report->filters);
}

static void complain(void *context, const char *sentence)
{
	(void)context;
	cli_warn("%s", sentence);
}

/* Returns 0, or the negative errno of a write error. */
static int print_text(struct report *report)
{
	report->text.capture = report->path;
	report->text.filter = report->filters.text;
	report->text.colors = cli_color(stdout);
	return kb_report_text(report->got, &report->text, report->out, NULL);
}

static int run(struct report *report, bool json)
{
	int ret;

	if (report->request)
		return report_requests(report, json);
	if (report->critical_path)
		return report_path(report, json);
	if (report->latency || report->irq)
		return report_latency(report, json);
	if (report->waits)
		return report_waits(report, json);
	if (report->classes)
		return report_classes(report, json);
	if (report->ended)
		return report_ended(report, json);
	ret = open_report(report) ?: choose_metrics(report);
	if (ret)
		return ret;
	if (json)
		report_put_json(report, report->out);
	else
		ret = print_text(report);
	ret = report_end(report, ret, report->got->damaged);
	if (ret != CLI_IMPOSSIBLE)
		kb_symbolizer_complaints(kb_trace_symbolizer(report->trace, NULL), complain, NULL);
	return ret;
}

static enum kb_what ended_of(int option)
{
	return option == OPTION_SYSCALLS ? KB_WHAT_SYSCALL :
	       option == OPTION_FAULTS	 ? KB_WHAT_FAULT : KB_WHAT_BLOCK;
}

int cmd_report(int argc, char **argv)
{
	struct report report = {
		.how.size = sizeof(report.how),
		.symbols.size = sizeof(report.symbols),
		.how.sort = KB_SORT_TASK | KB_SORT_IMAGE | KB_SORT_SYMBOL,
		.text.size = sizeof(report.text),
		.text.percent_limit = PERCENT_LIMIT,
		.slowest = 5,
	};
	bool json = false, lines = false, two = false;
	int option, status;

	while ((option = cli_getopt(argc, argv, &usage)) != -1) {
		switch (option) {
		case 'i':
			report.path = optarg;
			break;
		case 's':
			if (!parse_sort(optarg, &report.how.sort))
				return cli_fail("--sort %s: give some of task, pid, tid, image, "
						"symbol, line, cpu, mode, with commas between", optarg);
			break;
		case 'n':
			report.how.count = true;
			break;
		case 'C':
		case OPTION_FILTER_TASK:
		case OPTION_FILTER_TID:
		case OPTION_FILTER_TIME:
			if (filters_take(&report.filters, option, optarg) == FILTERS_WRONG)
				return CLI_IMPOSSIBLE;
			break;
		case OPTION_COUNTERS:
			report.text.counters = true;
			break;
		case 'M':
			report.metrics = report.text.metrics = optarg;
			break;
		case OPTION_IDLE:
			report.how.idle = true;
			break;
		case OPTION_LATENCY:
			report.latency = true;
			break;
		case OPTION_WAITS:
			report.waits = true;
			break;
		case OPTION_CLASSES:
			report.classes = true;
			break;
		case OPTION_SYSCALLS:
		case OPTION_FAULTS:
		case OPTION_BLOCK:
			two |= report.ended && report.ended != ended_of(option);
			report.ended = ended_of(option);
			break;
		case OPTION_PATH:
			report.critical_path = optarg;
			break;
		case OPTION_REQUEST:
			report.request = optarg;
			break;
		case OPTION_SLOWEST:
			if (!report_take_slowest(&report, optarg))
				return CLI_IMPOSSIBLE;
			break;
		case OPTION_IRQ:
			report.irq = true;
			break;
		case OPTION_LINES:
			lines = true;
			break;
		case OPTION_INLINE:
			report.symbols.inlined = true;
			break;
		case OPTION_CHILDREN:
			report.how.children = true;
			break;
		case 'g':
			report.how.call_graph = true;
			break;
		case OPTION_PERCENT:
			report.text.has_percent_limit = true;
			if (!parse_percent(optarg, &report.text.percent_limit))
				return cli_fail("--percent-limit %s: give a number from 0 to 100",
						optarg);
			break;
		case 'j':
			json = true;
			break;
		default:
			if (symbols_take(&report.symbols, option, optarg))
				break;
			return cli_usage(option == 'h', &usage);
		}
	}
	if (report.request && report_choose_requests(&report)) {
		filters_release(&report.filters);
		return CLI_IMPOSSIBLE;
	}
	if (report.critical_path && !report.request &&
	    (report.latency || report.irq || report.filters.how.cpus || report.filters.how.task ||
	     report.filters.how.has_tid)) {
		filters_release(&report.filters);
		return cli_fail("--critical-path is a report of its own, and goes where waits lead: leave "
				"out --latency, --irq and options that choose tasks or CPUs");
	}
	if (two || report.waits + report.classes + !!report.ended + (report.critical_path || report.latency || report.irq) > 1) {
		filters_release(&report.filters);
		return cli_fail("give one of these reports alone: --waits, --classes, --syscalls, --faults, --block, "
				"--critical-path; or --latency and --irq");
	}
	report.path = cli_input(report.path, argc, argv, CLI_CAPTURE);
	if (!report.path)
		return CLI_IMPOSSIBLE;
	report.how.filter = filters_get(&report.filters);
	if (lines)
		report.how.sort |= KB_SORT_LINE;
	report.symbols.lines = report.how.sort & KB_SORT_LINE;
	symbols_end(&report.symbols);
	status = run(&report, json);
	close_report(&report);
	return status;
}
