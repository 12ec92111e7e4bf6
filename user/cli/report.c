// SPDX-License-Identifier: MIT
/*
 * kbarman report: reports where time went, which tasks waited, how the CPUs idled, and what is
 * missing. One pass over the capture feeds all analyses. Memory use grows with tasks and symbols,
 * not with records.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <kbarman/chain.h>
#include <kbarman/cpulist.h>

#include "analysis/carry.h"
#include "base/array.h"
#include "cli.h"
#include "report.h"
#include "sandbox.h"
#include "symbols.h"

enum {
	OPTION_CHILDREN = 256, OPTION_TASK, OPTION_TID, OPTION_TIME, OPTION_PERCENT,
	OPTION_LINES, OPTION_INLINE, OPTION_COUNTERS, OPTION_IDLE,
};

static const struct cli_option options[] = {
	{ 'i', "input", "FILE", "the same as the argument FILE" },
	{ 's', "sort", "KEY,...",
	  "add up samples by task, tid, image, symbol, line, cpu\n"
	  "(default task,image,symbol)" },
	{ 'n', "count", NULL, "count samples; without -n each is weighed by its period" },
	{ 'C', "cpu", "LIST", "use only these CPUs, as in 0-3,8, for all tables" },
	{ OPTION_TASK, "task", "NAME", "use only samples of tasks with this name" },
	{ OPTION_TID, "tid", "ID", "use only samples of this task or of this process" },
	{ OPTION_TIME, "time", "FROM,TO",
	  "use only samples from FROM to TO, in seconds since the start of\n"
	  "the capture; either may be left out" },
	{ OPTION_CHILDREN, "children", NULL,
	  "add to each function what it called; needs call chains" },
	{ OPTION_COUNTERS, "counters", NULL,
	  "add a column for each counter, by symbol and by task" },
	{ OPTION_IDLE, "idle", NULL, "list the idle loop among the functions" },
	{ OPTION_LINES, "lines", NULL,
	  "list each source line separately, as --sort ...,line does" },
	{ OPTION_INLINE, "inline", NULL, "treat inlined functions as called ones" },
	{ 'g', "call-graph", NULL, "also print the tree of calls; needs call chains" },
	{ OPTION_PERCENT, "percent-limit", "N",
	  "leave out rows below N percent (default 0.5; 0 shows all)" },
	SYMBOLS_OPTIONS,
	CLI_COLOR_OPTION,
	{ 'j', "json", NULL, "print everything, one JSON object per line" },
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

/* The id of the first counter with one of these names. */
static uint32_t find_counter(const struct kb_names *names, const char *name, const char *other)
{
	uint32_t id, nr = kb_names_nr_counters(names);

	for (id = 0; id < nr; id++) {
		struct kb_text text = kb_names_counter(names, id);
		/* "cycles:u" is "cycles" as well */
		const char *colon = memchr(text.data, ':', text.length);
		size_t length = colon ? (size_t)(colon - text.data) : text.length;

		if ((length == strlen(name) && memcmp(text.data, name, length) == 0) ||
		    (length == strlen(other) && memcmp(text.data, other, length) == 0))
			return id;
	}
	return UINT32_MAX;
}

bool report_ipc(const struct report *report, const struct kb_hot *hot,
		const struct kb_hot_row *row, double *ipc)
{
	uint64_t cycles;

	if (report->cycles == UINT32_MAX || report->instructions == UINT32_MAX)
		return false;
	if (!row)
		return true;
	cycles = kb_hot_whole_counter(hot, row, report->cycles);
	if (cycles)
		*ipc = (double)kb_hot_whole_counter(hot, row, report->instructions) / cycles;
	else
		*ipc = row->partial ? NAN : 0;
	return true;
}

/* "FROM,TO" in seconds, as ns. */
static bool parse_time(const char *text, uint64_t *from, uint64_t *until)
{
	double seconds[2] = { 0, 1e9 };
	char *end;
	int i;

	for (i = 0; i < 2; i++) {
		if (*text && *text != ',') {
			seconds[i] = strtod(text, &end);
			if (end == text || !(seconds[i] >= 0 && seconds[i] <= 1e9))
				return false;
			text = end;
		}
		if (i == 0 && *text++ != ',')
			return false;
	}
	*from = seconds[0] * 1e9;
	*until = seconds[1] * 1e9;
	return *text == '\0' && *from <= *until;
}

static bool parse_id(const char *text, uint32_t *id)
{
	unsigned long value;
	char *end;

	errno = 0;
	value = strtoul(text, &end, 10);
	*id = value;
	return *text >= '0' && *text <= '9' && !*end && !errno && value <= UINT32_MAX;
}

/* Adds an option to the text of the filter: "task xz, cpu 0-3". */
static bool note_filter(struct report_filter *filter, const char *name, const char *value)
{
	char *text;

	if (asprintf(&text, "%s%s%s %s", filter->text ? filter->text : "",
		     filter->text ? ", " : "", name, value) < 0)
		return false;
	free(filter->text);
	filter->text = text;
	return true;
}

static bool is_wanted(const struct report *report, const struct kb_event *event, bool on_cpu)
{
	const struct report_filter *filter = &report->filter;
	char buffer[KB_TASK_NAME_BUFFER];
	struct kb_task_hit hit;
	uint64_t ns;

	if (filter->cpus && on_cpu && (event->core / 64 >= filter->nr_cpu_words ||
			     !(filter->cpus[event->core / 64] >> event->core % 64 & 1)))
		return false;
	if (filter->has_tid && event->task_id != filter->tid) {
		kb_tasks_find(report->tasks, event->task_id, event->timestamp, &hit);
		if (hit.tgid != filter->tid)
			return false;
	}
	if (filter->task && strcmp(filter->task, kb_tasks_name(report->tasks, event->task_id,
							       event->timestamp, buffer)) != 0)
		return false;
	ns = (uint64_t)kb_barman_ns(report->barman, event->timestamp) -
	     (uint64_t)kb_timeline_first(report->timeline);
	return ns >= filter->from && ns <= filter->until;
}

/* The filter applies to a wait's task and to its beginning. */
static bool is_wait_wanted(void *context, const struct kb_wait *wait)
{
	const struct report *report = context;
	struct kb_event event = { .task_id = wait->task_id, .timestamp = wait->ticks };

	return is_wanted(report, &event, false);
}

/* There are samples without PC. Returns 0 or -ENOMEM. */
static int begin_counts(struct report *report)
{
	struct kb_error err = { 0 };

	report->carry = kb_carry_create(report->header->max_cores,
					kb_names_most_of_core(report->names));
	if (!report->carry)
		return -ENOMEM;
	return kb_hot_create(&report->counts, report->tasks, KB_SORT_TID, &err) ?:
	       kb_hot_sum_counters(report->counts, report->names);
}

static int open_report(struct report *report)
{
	unsigned int apart = report->idle ? 0 : KB_SORT_IDLE;
	struct kb_error err = { 0 };

	cli_progress(NULL, false);
	cli_sandbox_reading(report->path);
	if (kb_barman_open(&report->barman, report->path, &err))
		return cli_fail_error(&err);
	report->header = kb_barman_header(report->barman);
	report->core_seen = calloc((size_t)report->header->max_cores + 1, sizeof(bool));
	if (!report->core_seen || kb_tasks_create(&report->tasks, report->barman) ||
	    kb_losses_read(&report->losses, report->barman))
		return cli_fail("out of memory");
	if (kb_names_create(&report->names, report->barman, &err) ||
	    kb_timeline_create(&report->timeline, report->barman, report->names, &err) ||
	    kb_stops_create(&report->stops, report->barman, &err) ||
	    kb_symbolizer_create(&report->symbolizer, report->barman, report->path,
				 &report->symbols, &err) ||
	    kb_hot_create(&report->by_sort, report->tasks, report->sort | apart, &err) ||
	    kb_hot_create(&report->by_tid, report->tasks, KB_SORT_TID | apart, &err) ||
	    kb_sched_create(&report->sched, report->header->max_cores, &err) ||
	    kb_offcpu_create(&report->offcpu, report->barman, report->symbolizer, report->sched,
			     &err))
		return cli_fail_error(&err);
	kb_sched_only(report->sched, report->filter.cpus, report->filter.nr_cpu_words);
	if (report->filter.text)
		kb_offcpu_filter(report->offcpu, is_wait_wanted, report);
	if (report->call_graph && kb_calltree_create(&report->tree, report->barman, &err))
		return cli_fail_error(&err);
	if (report->tree && !report->idle)
		kb_calltree_idle_apart(report->tree);
	if (kb_hot_sum_counters(report->by_sort, report->names) ||
	    kb_hot_sum_counters(report->by_tid, report->names) ||
	    (kb_barman_fact(report->barman, "counts") && begin_counts(report)))
		return cli_fail("out of memory");
	report->cycles = find_counter(report->names, "cycles", "cpu-cycles");
	report->instructions = find_counter(report->names, "instructions", "inst_retired");
	return CLI_OK;
}

static void close_report(struct report *report)
{
	kb_offcpu_destroy(report->offcpu);
	kb_sched_destroy(report->sched);
	kb_calltree_destroy(report->tree);
	kb_carry_destroy(report->carry);
	kb_hot_destroy(report->counts);
	kb_hot_destroy(report->by_tid);
	kb_hot_destroy(report->by_sort);
	kb_symbolizer_destroy(report->symbolizer);
	kb_timeline_destroy(report->timeline);
	kb_stops_destroy(report->stops);
	kb_names_destroy(report->names);
	kb_losses_release(&report->losses);
	kb_tasks_destroy(report->tasks);
	free(report->core_seen);
	free(report->filter.text);
	kb_barman_close(report->barman);
}

/* Adds the sample to all callers of the sampled function. */
static int add_callers(struct report *report, const struct kb_event *event)
{
	uint32_t frame, depth = kb_chain_depth(event), nr, i;
	const struct kb_frame *frames;
	int ret = 0;

	for (frame = 0; frame < depth && !ret; frame++) {
		nr = kb_symbolizer_frames(report->symbolizer, event->task_id, event->timestamp,
					  kb_chain_lookup(event, frame), &frames);
		for (i = frame ? 0 : 1; i < nr && !ret; i++)
			ret = kb_hot_add_caller(report->by_sort, event, &frames[i]);
	}
	return ret;
}

/* Were the cycles and instructions of the sample not both read? */
static bool is_half_read(const struct report *report, const struct kb_event *event)
{
	uint32_t i, id, nr = kb_names_of_core(report->names, event->core);

	for (i = 0; i < nr && i < event->sample.nr_counters; i++) {
		id = kb_names_counter_id(report->names, event->core, i);
		if ((id == report->cycles || id == report->instructions) &&
		    event->sample.counters[i] == KB_COUNTER_INVALID)
			return true;
	}
	return false;
}

typedef int adder(struct kb_hot *hot, const struct kb_event *event, const struct kb_frame *frame);

/* How the sample goes into a table. */
static adder *adder_of(const struct report *report, const struct kb_event *event, bool partial)
{
	return partial || is_half_read(report, event) ? kb_hot_add_partial : kb_hot_add;
}

static int count_sample(struct report *report, const struct kb_event *event, bool partial)
{
	adder *add = adder_of(report, event, partial);
	const struct kb_frame *frames;
	int ret;

	kb_symbolizer_frames(report->symbolizer, event->task_id, event->timestamp,
			     event->sample.pc, &frames);
	ret = add(report->by_sort, event, frames) ?: add(report->by_tid, event, frames);
	if (!ret && report->children)
		ret = add_callers(report, event);
	if (!ret && report->tree)
		ret = kb_calltree_add(report->tree, event, report->symbolizer);
	return ret;
}

/* What every sample says of its task's counters, with PC or without. */
static int add_counts(struct report *report, const struct kb_event *event, bool partial)
{
	static const struct kb_frame nowhere = {
		.symbol = { .image = "", .image_base = "", .name = "" }, .file = "" };

	return adder_of(report, event, partial)(report->counts, event, &nowhere);
}

static int add_sample(struct report *report, const struct kb_event *event, bool partial)
{
	bool wanted = !report->filter.text || is_wanted(report, event, true);
	struct kb_event carried;
	int ret;

	/* Of another writer, the first sample tells. */
	if (!event->sample.has_pc && !report->counts && report->events[KB_EVENT_SAMPLE] == 1 &&
	    begin_counts(report))
		return -ENOMEM;
	ret = wanted && report->counts ? add_counts(report, event, partial) : 0;
	if (!event->sample.has_pc) {
		report->samples_without_pc++;
		if (report->carry)
			kb_carry_add(report->carry, event);
		return ret;
	}
	if (report->carry) {
		carried = *event;
		kb_carry_take(report->carry, &carried);
		event = &carried;
	}
	if (ret || !wanted) {
		report->filtered += !wanted;
		return ret;
	}
	/* There are few waits, and their order in the queue does not matter. */
	if (partial)
		return count_sample(report, event, true);
	event = kb_sample_queue_put(&report->samples, report->symbolizer, event);
	return event ? count_sample(report, event, false) : 0;
}

static int add_event(struct report *report, const struct kb_event *event)
{
	struct kb_slice slices[KB_TIMELINE_SLICES];
	int64_t ns = kb_barman_ns(report->barman, event->timestamp);
	unsigned int i, nr;
	bool partial;
	int ret = 0;

	report->nr_events++;
	report->events[event->type]++;
	if (event->core < report->header->max_cores && !report->core_seen[event->core]) {
		report->core_seen[event->core] = true;
		report->nr_cores++;
	}
	if (event->timestamp > report->last_timestamp && event->type != KB_EVENT_UNKNOWN)
		report->last_timestamp = event->timestamp;
	partial = kb_stops_feed(report->stops, event, ns);
	nr = kb_timeline_feed(report->timeline, event, ns, slices);
	for (i = 0; i < nr && !ret; i++) {
		ret = kb_sched_add(report->sched, &slices[i], event->timestamp);
		if (!ret && event->type == KB_EVENT_TASK_SWITCH)
			ret = kb_offcpu_switch(report->offcpu, event, &slices[i]);
	}
	if (!ret && event->type == KB_EVENT_SAMPLE)
		ret = add_sample(report, event, partial);
	return ret;
}

/* Reads all events. Reports damage and stores that there was some. */
static int read_events(struct report *report)
{
	const struct kb_error *first;
	struct kb_error err = { 0 };
	const struct kb_event *sample;
	struct kb_event event;
	struct kb_slice slice;
	int ret;

	while ((ret = kb_barman_next(report->barman, &event, &err)) > 0)
		if (add_event(report, &event))
			return cli_fail("out of memory");
	while ((sample = kb_sample_queue_take(&report->samples)))
		if (count_sample(report, sample, false))
			return cli_fail("out of memory");
	report->damaged = ret < 0 || kb_barman_damage(report->barman, &first);
	if (ret < 0)
		cli_warn("%s", kb_error_text(&err));
	else if (report->damaged)
		cli_warn("%s", kb_error_text(first));
	while (kb_timeline_end(report->timeline, &slice))
		if (kb_sched_add(report->sched, &slice, report->last_timestamp))
			return cli_fail("out of memory");
	kb_stops_end(report->stops, kb_timeline_last(report->timeline));
	return CLI_OK;
}

static bool finish_tree(struct kb_calltree *tree, bool count, struct report_tree *out)
{
	out->nodes = kb_calltree_finish(tree, count, &out->nr, &out->order);
	return out->nodes;
}

static int order_tables(struct report *report)
{
	struct kb_hot_row totals;

	report->rows = kb_hot_rows(report->by_sort, report->count, &report->nr_rows,
				   &report->totals);
	report->task_rows = kb_hot_rows(report->by_tid, report->count, &report->nr_task_rows,
					&totals);
	if (report->counts)
		report->count_rows = kb_hot_rows(report->counts, false, &report->nr_count_rows,
						 &totals);
	report->nr_work_rows = kb_hot_work(report->rows, report->nr_rows);
	for (uint32_t i = report->nr_work_rows; i < report->nr_rows; i++) {
		report->idle_samples += report->rows[i].samples;
		report->idle_weight += report->rows[i].weight;
	}
	report->nr_work_task_rows = kb_hot_work(report->task_rows, report->nr_task_rows);
	report->sched_tasks = kb_sched_tasks(report->sched, &report->nr_sched_tasks);
	report->duration_ns = kb_timeline_duration(report->timeline);
	report->waits = kb_offcpu_longest(report->offcpu, false, &report->nr_waits);
	report->sleeps = kb_offcpu_longest(report->offcpu, true, &report->nr_sleeps);
	if (!report->rows || !report->task_rows || (report->counts && !report->count_rows) ||
	    !finish_tree(kb_offcpu_tree(report->offcpu), false, &report->waiting) ||
	    (report->tree && !finish_tree(report->tree, report->count, &report->calls)))
		return cli_fail("out of memory");
	return CLI_OK;
}

struct kb_text report_weight_name(const struct report *report)
{
	uint32_t core;

	for (core = 0; core < report->header->max_cores && !report->count; core++)
		if (report->core_seen[core] && kb_names_of_core(report->names, core))
			return kb_names_counter(report->names,
						kb_names_counter_id(report->names, core, 0));
	return kb_text("samples");
}

static void complain(void *context, const char *sentence)
{
	(void)context;
	cli_warn("%s", sentence);
}

static int run(struct report *report, bool json)
{
	int ret = open_report(report);

	if (!ret)
		ret = read_events(report);
	cli_progress_end();
	if (!ret)
		ret = order_tables(report);
	if (ret)
		return ret;
	if (json) {
		ret = report_print_json(report);
	} else {
		report_print_text(report);
		ret = fflush(stdout) || ferror(stdout) ? -errno : 0;
	}
	if (ret)
		return cli_fail("can't write standard output: %s", strerror(-ret));
	kb_symbolizer_complaints(report->symbolizer, complain, NULL);
	return report->damaged ? CLI_DAMAGED : CLI_OK;
}

/* Takes an option of the filter. Returns CLI_OK, or CLI_IMPOSSIBLE after a message. */
static int take_filter(struct report_filter *filter, int option, const char *value)
{
	static uint64_t cpus[KB_CPU_WORDS];
	struct kb_error err = { 0 };
	const char *name = "task";
	int nr;

	switch (option) {
	case 'C':
		name = "cpu";
		nr = kb_cpulist_parse(cpus, value, KB_CPUS_MAX, &err);
		if (nr < 0)
			return cli_fail_error(&err);
		filter->cpus = cpus;
		filter->nr_cpu_words = nr;
		break;
	case OPTION_TASK:
		filter->task = value;
		break;
	case OPTION_TID:
		name = "tid";
		filter->has_tid = true;
		if (!parse_id(value, &filter->tid))
			return cli_fail("--tid %s: give the number of a task or process", value);
		break;
	default:
		name = "time";
		if (!parse_time(value, &filter->from, &filter->until))
			return cli_fail("--time %s: give FROM,TO in seconds", value);
		break;
	}
	return note_filter(filter, name, value) ? CLI_OK : cli_fail("out of memory");
}

int cmd_report(int argc, char **argv)
{
	struct report report = {
		.sort = KB_SORT_TASK | KB_SORT_IMAGE | KB_SORT_SYMBOL,
		.percent_limit = 0.5,
		.filter.until = UINT64_MAX,
	};
	bool json = false, lines = false;
	int option, status;

	while ((option = cli_getopt(argc, argv, &usage)) != -1) {
		switch (option) {
		case 'i':
			report.path = optarg;
			break;
		case 's':
			if (!parse_sort(optarg, &report.sort))
				return cli_fail("--sort %s: give some of task, tid, image, symbol, "
						"line, cpu, with commas between", optarg);
			break;
		case 'n':
			report.count = true;
			break;
		case 'C':
		case OPTION_TASK:
		case OPTION_TID:
		case OPTION_TIME:
			if (take_filter(&report.filter, option, optarg))
				return CLI_IMPOSSIBLE;
			break;
		case OPTION_COUNTERS:
			report.counters = true;
			break;
		case OPTION_IDLE:
			report.idle = true;
			break;
		case OPTION_LINES:
			lines = true;
			break;
		case OPTION_INLINE:
			report.symbols.inlined = true;
			break;
		case OPTION_CHILDREN:
			report.children = true;
			break;
		case 'g':
			report.call_graph = true;
			break;
		case OPTION_PERCENT:
			if (!parse_percent(optarg, &report.percent_limit))
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
	report.path = cli_input(report.path, argc, argv, CLI_CAPTURE);
	if (!report.path)
		return CLI_IMPOSSIBLE;
	if (lines)
		report.sort |= KB_SORT_LINE;
	report.symbols.lines = report.sort & KB_SORT_LINE;
	status = run(&report, json);
	close_report(&report);
	return status;
}
