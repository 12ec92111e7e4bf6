// SPDX-License-Identifier: MIT
/*
 * kbarman top: shows where time goes now. A session in overwrite mode records into small buffers.
 * Each refresh makes a frozen copy of the buffers, which is a capture, and reads it as one. If a
 * flight recorder runs, top reads the recorder's buffers instead.
 *
 * The screen only uses the escape sequences for "home" and "erase", so it works over a serial line.
 * If the output is not a terminal, refreshes are printed one after the other.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <search.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include <kbarman/cpulist.h>
#include <kbarman/kernel_maps.h>
#include <kbarman/names.h>
#include <kbarman/perf_events.h>
#include <kbarman/recorder.h>

#include "analysis/facts/sources.h"
#include "analysis/samples/hot.h"
#include "analysis/time/sched.h"
#include "base/array.h"
#include "base/clock.h"
#include "base/io/terminal.h"
#include "base/percent.h"
#include "base/text/json.h"
#include "base/text/utf8.h"
#include "cli/base/cli.h"
#include "cli/base/decoder.h"
#include "cli/base/symbols.h"
#include "cli/session/absent.h"
#include "cli/session/event_list.h"
#include "cli/session/per_core.h"
#include "cli/session/sample_rate.h"
#include "cli/session/sessions.h"
#include "cli/session/sources.h"
#include "cli/report/print.h"
#include "cli/top/objects.h"
#include "cli/top/waits.h"
#include "export/text/latency_put.h"
#include "record/perf/event_plan.h"
#include "sym/names/demangle.h"

#define RING_BYTES	(1U << 20)
#define DEFAULT_HZ	499	/* not a multiple of the tick's frequency */
#define DEFAULT_ROWS	24
#define DEFAULT_COLUMNS	80
#define ROWS_OF_JSON	100	/* limit of each table */

static const struct cli_option options[] = {
	{ 'd', "interval", "TIME", "time between two readings, each of which is shown (default 2s)" },
	{ 'd', "delay", "TIME", NULL },
	{ 'n', "number", "N", "end after N readings" },
	{ 'e', "event", "EVENT", "use this event to sample (default cycles, or cpu-clock)" },
	{ 'F', "freq", "HZ", "take HZ samples per second and CPU (default 499)" },
	CLI_CPU_OPTION,
	SOURCES_OPTIONS,
	NO_OBJECTS_OPTION,
	SYMBOLS_OPTIONS,
	CLI_COLOR_OPTION,
	{ 'j', "json", NULL, "print JSON, one object per line" },
	{ 0 },
};

static const struct cli_usage usage = {
	.head =
	"usage: kbarman top [OPTIONS]\n"
	"\n"
	"Show which tasks and functions use the CPUs now, how busy the CPUs are, and what tasks\n"
	"wait for. Press q or Ctrl-C to end.\n"
	"\n",
	.options = options,
	.column = 24,
};

struct top {
	double delay;
	uint64_t number, frequency;
	char *events_text;		/* NULL: the default */
	const char *cpus_text;
	uint32_t sources;		/* KBARMAN_SOURCE_* */
	bool people, no_objects;
	struct kb_symbol_options symbols;	/* with raw names: see readable() */
	bool raw_names;			/* --no-demangle */
	struct kb_event_plan plan;

	struct kb_device *device;
	struct kbarman_query query;
	bool ours;			/* top has started the session */
	int signals;
	bool screen;			/* refresh in place */
	struct termios terminal;	/* former settings, if screen */
	unsigned int rows, columns;
	struct kb_json json;

	struct kb_symbol_cache *cache;	/* for all refreshes: reads symbols once */
	struct kb_demangler demangler;
	void *names;			/* demangled names: tsearch(3) */

	struct top_objects objects;
	uint64_t since;			/* ticks: later records are new; 0 at first */
	struct kbarman_stats stats;
};

/* The data of one refresh. */
struct view {
	struct kb_trace *trace;
	const struct kb_header *header;
	const struct kb_tasks *tasks;
	struct kb_symbolizer *symbolizer;
	struct kb_spots spots;
	struct kb_hot *hot;
	struct kb_sched *sched;
	struct top_waits waits;
	bool has_objects;
	uint64_t last;			/* ticks */
	int64_t from_ns, until_ns;
	uint64_t records, samples;

	/* After all was read: the table of samples, with the idle loop's rows last. */
	struct kb_sample_table symbols;
	struct kb_sample_row totals;
};

/* ---- the session ---- */

static int configure(struct top *top)
{
	struct kbarman_configure configure = {
		.mode = KBARMAN_MODE_OVERWRITE,
		.sources = top->sources,
		.ring_bytes = RING_BYTES,
	};
	struct kb_sampling sampling = { .period = top->frequency, .freq = true, .clock = !top->events_text };
	struct kb_perf_event events[KB_EVENTS_MAX];
	uint64_t cpus[KB_CPU_WORDS];
	struct kb_error err;
	int nr;

	nr = kb_events_parse(events, KB_EVENTS_MAX, top->events_text ?: "cycles", NULL, &err);
	if (nr < 0)
		return cli_fail_error(&err);
	limit_sample_rate(&sampling, events);
	if (kb_event_plan_make(&top->plan, events, (unsigned int)nr, &sampling, NULL, &err))
		return cli_fail("-e: %s", kb_error_text(&err));
	kb_event_plan_use(&top->plan, &configure);
	if (!top->no_objects && top->query.features & KBARMAN_FEATURE_OBJECTS)
		configure.flags |= KBARMAN_CONFIGURE_OBJECTS;
	if (top->cpus_text) {
		nr = kb_cpulist_parse(cpus, top->cpus_text, top->query.nr_cpus, &err);
		if (nr < 0)
			return cli_fail("-C %s", kb_error_text(&err));
		configure.cpus_ptr = (uintptr_t)cpus;
		configure.nr_cpu_words = (uint32_t)nr;
	}
	if (sources_check(top->sources, &top->query) ||
	    absent_leave_out(&configure, top->query.absent))
		return CLI_IMPOSSIBLE;
	return kb_device_configure(top->device, &configure, &err) ? cli_fail_error(&err) : 0;
}

static void add_kernel_maps(struct top *top)
{
	struct kb_kernel_maps maps = { 0 };
	struct kb_error err;
	uint32_t added;

	if (kb_kernel_maps_read(&maps, NULL, NULL, &err) ||
	    (maps.nr && kb_kernel_maps_add(&maps, top->device, &added, &err)))
		cli_warn("kernel functions will have no names: %s", kb_error_text(&err));
	kb_kernel_maps_free(&maps);
}

static int begin(struct top *top)
{
	struct kb_error err;

	if (kb_device_open(&top->device, &err))
		return cli_fail_error(&err);
	sessions_choose_overwrite(top->device);
	if (kb_device_query(top->device, &top->query, &err))
		return cli_fail_error(&err);
	if (top->query.mode == KBARMAN_MODE_OVERWRITE && !top->events_text && !top->cpus_text &&
	    !(top->sources & ~top->query.sources & KBARMAN_SOURCE_DETAILS) &&
	    top->query.state & KBARMAN_STATE_OWNED && top->query.state & KBARMAN_STATE_RUNNING)
		return 0;
	if (configure(top))
		return CLI_IMPOSSIBLE;
	top->ours = true;
	if (kb_device_start(top->device, &err))
		return cli_fail_error(&err);
	if (top->plan.per_core && per_core_say(top->device))
		return CLI_IMPOSSIBLE;
	add_kernel_maps(top);
	return 0;
}

/* ---- a view ---- */

static void close_view(struct view *view)
{
	kb_sched_destroy(view->sched);
	kb_hot_destroy(view->hot);
	kb_spots_release(&view->spots);
	top_waits_release(&view->waits);
	kb_trace_close(view->trace);
}

/* Opens a frozen copy of the buffers. */
static int open_view(struct top *top, struct view *view)
{
	const struct kb_symbol_options symbols = {
		.size = sizeof(symbols), .cache = top->cache,
	};
	const struct kb_trace_options how = { .size = sizeof(how), .symbols = &symbols };
	struct kb_error err = { 0 };

	top_waits_init(&view->waits);
	if (kb_trace_open_device(&view->trace, top->device, &how, &err))
		return cli_fail_error(&err);
	view->header = kb_trace_header(view->trace);
	view->tasks = kb_trace_tasks(view->trace, &err);
	view->symbolizer = view->tasks ? kb_trace_symbolizer(view->trace, &err) : NULL;
	if (!view->symbolizer ||
	    kb_hot_create(&view->hot, view->tasks, &view->spots, KB_SORT_TASK | KB_SORT_IMAGE |
			  KB_SORT_SYMBOL | KB_SORT_IDLE, &err) ||
	    kb_sched_create(&view->sched, view->header->max_cores, &err))
		return cli_fail_error(&err);
	return 0;
}

/* Adds the new part of a slice. */
static int add_slice(struct view *view, struct kb_slice slice, uint64_t timestamp)
{
	if (slice.end <= view->from_ns)
		return 0;
	if (slice.start < view->from_ns)
		slice.start = view->from_ns;
	return kb_sched_add(view->sched, &slice, timestamp);
}

static int add_sample(struct view *view, const struct kb_event *event)
{
	struct kb_frame frame = {
		.symbol = *kb_symbolizer_resolve(view->symbolizer, event->task_id,
						 event->timestamp, event->sample.pc),
		.file = "",
	};

	view->samples++;
	return kb_hot_add(view->hot, event, &frame);
}

static int add_event(struct top *top, struct view *view, const struct kb_walk *walk)
{
	const struct kb_event *event = &walk->event;
	int ret = 0;

	if (event->type == KB_EVENT_UNKNOWN)
		return 0;
	if (event->timestamp > view->last)
		view->last = event->timestamp;
	for (unsigned int i = 0; i < walk->nr_slices && !ret; i++)
		ret = add_slice(view, walk->slices[i], event->timestamp);
	if (!ret)
		ret = top_waits_add(&view->waits, walk, event->timestamp > top->since);
	if (!ret && view->has_objects)
		ret = top_objects_add(&top->objects, walk);
	if (event->timestamp <= top->since)
		return ret;
	view->records++;
	if (!ret && event->type == KB_EVENT_SAMPLE && event->sample.has_pc)
		ret = add_sample(view, event);
	return ret;
}

static int read_view(struct top *top, struct view *view)
{
	struct kb_error err = { 0 };
	const struct kb_names *names = kb_trace_names(view->trace, &err);
	const struct kb_walk *walk;
	struct kb_slice slice;
	int ret;

	if (!names)
		return cli_fail_error(&err);
	view->has_objects = !top->no_objects && kb_has_objects(kb_trace_barman(view->trace));
	view->from_ns = top->since ? kb_barman_ns(kb_trace_barman(view->trace), top->since) :
				     INT64_MIN;
	if (view->has_objects && top_objects_begin(&top->objects, view->trace, top->since, view->from_ns))
		return cli_fail("out of memory");
	while ((ret = kb_trace_next(view->trace, &walk, &err)) > 0)
		if (add_event(top, view, walk))
			return cli_fail("out of memory");
	if (ret < 0)
		return cli_fail_error(&err);
	while (kb_trace_end(view->trace, &slice))
		if (add_slice(view, slice, view->last) ||
		    (view->has_objects && top_objects_run(&top->objects, &slice)))
			return cli_fail("out of memory");
	if (!kb_hot_finish(view->hot, !kb_names_one_weight(names), &view->symbols, &view->totals))
		return cli_fail("out of memory");
	if (view->from_ns < kb_trace_first(view->trace))
		view->from_ns = kb_trace_first(view->trace);
	view->until_ns = kb_trace_last(view->trace);
	if (view->has_objects && top_objects_finish(&top->objects, view->from_ns, view->until_ns))
		return cli_fail("out of memory");
	if (view->last > top->since)
		top->since = view->last;
	return 0;
}

/* ---- output ---- */

/* Prints a line of the screen, cut at the width of the screen, and erases the rest of the line. */
__attribute__((format(printf, 2, 3)))
static void put(struct top *top, const char *format, ...)
{
	char line[512];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	if (top->columns < sizeof(line))
		line[top->columns] = '\0';
	/* Programs choose their names, which must not control the terminal. */
	line[kb_utf8_shown(line, line, strlen(line))] = '\0';
	kb_out_printf(top->json.out, "%s%s", line, top->screen ? "\033[K\r\n" : "\n");
}

/* The same, after a share that may have a colour. */
__attribute__((format(printf, 3, 4)))
static void put_share(struct top *top, double share, const char *format, ...)
{
	const char *color = cli_color(stdout) ? kb_share_color(share) : NULL;
	const unsigned int width = 8, columns = top->columns;
	char line[512];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	kb_out_printf(top->json.out, "%s%7.2f%%%s", color ? color : "", share,
		      color ? KB_COLOR_END : "");
	top->columns = columns > width ? columns - width : 0;
	put(top, "%s", line);
	top->columns = columns;
}

static void put_cpus(struct top *top, struct view *view)
{
	char line[512] = "busy ";
	size_t used = strlen(line);

	for (uint32_t i = 0; i < view->header->max_cores && used < sizeof(line); i++) {
		const struct kb_sched_cpu *cpu = kb_sched_cpu(view->sched, i);
		uint64_t all = cpu->busy_ns + cpu->awake_ns + cpu->halted_ns + cpu->lost_ns;

		if (cpu->seen)
			used += (size_t)snprintf(line + used, sizeof(line) - used, " CPU%u %3.0f%%", i,
						 kb_percent(cpu->busy_ns, all));
	}
	put(top, "%s", line);
}

static void put_head(struct top *top, struct view *view, const struct kbarman_stats *stats)
{
	double seconds = (view->until_ns - view->from_ns) / 1e9;
	time_t now = time(NULL);
	char text[32];
	struct tm tm;

	localtime_r(&now, &tm);
	strftime(text, sizeof(text), "%H:%M:%S", &tm);
	put(top, "kbarman top  %s  %.1f s: %.0f records/s, %" PRIu64 " samples, %" PRIu64 " lost%s",
	    text, seconds, seconds > 0 ? view->records / seconds : 0, view->samples,
	    kb_stats_lost(stats) - kb_stats_lost(&top->stats), top->ours ? "" : "  (flight recorder)");
	put_cpus(top, view);
}

static void put_tasks(struct top *top, struct view *view, unsigned int rows)
{
	uint64_t all = (uint64_t)(view->until_ns - view->from_ns);
	char buffer[KB_TASK_NAME_BUFFER];
	const struct kb_sched_task *tasks;
	uint32_t nr;

	tasks = kb_sched_tasks(view->sched, &nr);
	put(top, "%s", "");
	put(top, "  Run %%    Runs  Preempted  Blocked     TID  Task");
	for (uint32_t i = 0; i < nr && rows; i++) {
		if (!tasks[i].run_ns || !tasks[i].key)
			continue;	/* the line "busy" shows idling */
		put(top, "%6.1f%%  %6" PRIu64 "  %9" PRIu64 "  %7" PRIu64 "  %6" PRIu64 "  %s",
		    kb_percent(tasks[i].run_ns, all), tasks[i].runs, tasks[i].preempted,
		    tasks[i].blocked, tasks[i].key,
		    kb_tasks_name(view->tasks, (uint32_t)tasks[i].key, tasks[i].last_seen, buffer));
		rows--;
	}
}

/* Who woke, as far as a record tells. */
static void name_waker(const struct view *view, const struct kb_arrow *arrow, char *text, size_t size)
{
	static const char *const before[] = {
		[KB_CONTEXT_TASK] = "", [KB_CONTEXT_SOFTIRQ] = "softirq in ",
		[KB_CONTEXT_IRQ] = "interrupt in ", [KB_CONTEXT_IDLE] = "",
	};
	char buffer[KB_TASK_NAME_BUFFER];

	snprintf(text, size, "%s%s", arrow->context < ARRAY_SIZE(before) ? before[arrow->context] : "",
		 kb_tasks_name(view->tasks, arrow->waker, arrow->timestamp, buffer));
}

static const char *name_woken(const struct view *view, const struct top_wait *wait,
			      char buffer[KB_TASK_NAME_BUFFER])
{
	return kb_tasks_name(view->tasks, wait->longest.task_id, wait->longest.timestamp, buffer);
}

static void put_waits(struct top *top, struct view *view, unsigned int rows)
{
	char buffer[KB_TASK_NAME_BUFFER], waker[KB_TASK_NAME_BUFFER + 16];
	const struct top_wait *waits;
	uint32_t nr;

	waits = top_waits_sort(&view->waits, &nr);
	put(top, "%s", "");
	put(top, "Longest ms   Mean ms     Waits     TID  Task that was woken, and by whom");
	for (uint32_t i = 0; i < nr && i < rows; i++) {
		name_waker(view, &waits[i].longest, waker, sizeof(waker));
		put(top, "%10.3f  %8.3f  %8" PRIu64 "  %6" PRIu64 "  %s, by %s",
		    (double)waits[i].longest_ns / 1e6,
		    (double)waits[i].sum_ns / (double)waits[i].count / 1e6, waits[i].count,
		    waits[i].task_id, name_woken(view, &waits[i], buffer), waker);
	}
}

/* What is shown has names, which may take a hundredth of the time. */
static const struct top_object *name_objects(struct top *top, uint32_t most, uint32_t *nr)
{
	return top_objects_name(&top->objects, most, (int64_t)(top->delay * 1e7), nr);
}

static void put_object(struct top *top, const struct top_object *object)
{
	struct latency_text text = { 0 };
	char now[16] = "", tasks[16] = "";
	const char *what;
	size_t size;

	if (kb_out_memory(&text.put.out))
		return;
	latency_put_object(&text, &object->row);
	if (object->row.holder)
		kb_out_printf(text.put.out, ", held by %s (%" PRIu32 ")", object->row.holder_task, object->row.holder);
	what = kb_out_data(text.put.out, &size);
	if (object->nr_now) {
		snprintf(now, sizeof(now), "%.1f", (double)object->now_ns / 1e6);
		snprintf(tasks, sizeof(tasks), "%" PRIu32, object->nr_now);
	}
	put(top, "%8s %6s %9.1f %6" PRIu64 " %9.1f  %6" PRIu32 "  %s: %.*s", now, tasks,
	    (double)object->sum_ns / 1e6, object->waits, (double)object->longest_ns / 1e6, object->tid,
	    object->row.task, what ? (int)size : 0, what ?: "");
	kb_out_destroy(text.put.out);
}

static void put_objects(struct top *top, unsigned int rows)
{
	uint32_t nr;
	const struct top_object *objects = name_objects(top, rows, &nr);

	put(top, "%s", "");
	put(top, "  Now ms  Tasks    Sum ms  Waits   Longest     TID  Task, and what it waits for");
	for (uint32_t i = 0; i < nr; i++)
		put_object(top, &objects[i]);
}

struct name {
	char *raw, *readable;		/* readable NULL: the same as raw */
};

static int compare_names(const void *left, const void *right)
{
	return strcmp(((const struct name *)left)->raw, ((const struct name *)right)->raw);
}

static void free_name(void *data)
{
	struct name *name = data;

	free(name->raw);
	free(name->readable);
	free(name);
}

/*
 * A demangled symbol. Demangling may start a process, so it is done for shown names only, and once
 * for each name.
 */
static const char *readable(struct top *top, const char *raw)
{
	struct name key = { .raw = (char *)raw }, *name, **node;

	if (raw[0] != '_' || top->raw_names)
		return raw;
	node = tfind(&key, &top->names, compare_names);
	if (node)
		return (*node)->readable ?: raw;
	name = calloc(1, sizeof(*name));
	if (!name)
		return raw;
	name->raw = strdup(raw);
	name->readable = kb_demangle(&top->demangler, raw);
	if (!name->raw || !tsearch(name, &top->names, compare_names)) {
		free_name(name);
		return raw;
	}
	return name->readable ?: raw;
}

static void put_symbols(struct top *top, struct view *view, unsigned int rows)
{
	uint64_t idle = 0;

	for (uint32_t i = view->symbols.nr_work; i < view->symbols.nr; i++)
		idle += kb_hot_row(view->hot, i).weight;
	put(top, "%s", "");
	put(top, "Overhead  Task              Image                 Symbol  (idle loop: %.2f%%)",
	    kb_percent(idle, view->totals.weight));
	for (uint32_t i = 0; i < view->symbols.nr_work && i < rows; i++) {
		const struct kb_sample_row row = kb_hot_row(view->hot, i);

		put_share(top, kb_percent(row.weight, view->totals.weight),
			  "  %-16s  %-20s  [%c] %s", row.task, row.image_base,
			  row.kernel ? 'k' : '.',
			  *row.symbol ? readable(top, row.symbol) : "[unknown]");
	}
}

static void json_waits(struct top *top, struct view *view)
{
	char buffer[KB_TASK_NAME_BUFFER], waker[KB_TASK_NAME_BUFFER + 16];
	struct kb_json *json = &top->json;
	const struct top_wait *waits;
	uint32_t nr;

	waits = top_waits_sort(&view->waits, &nr);
	for (uint32_t i = 0; i < nr && i < ROWS_OF_JSON; i++) {
		name_waker(view, &waits[i].longest, waker, sizeof(waker));
		kb_json_begin(json, "wait");
		kb_json_u64(json, "tid", waits[i].task_id);
		kb_json_string(json, "task", name_woken(view, &waits[i], buffer));
		kb_json_u64(json, "waits", waits[i].count);
		kb_json_u64(json, "wait_ns", waits[i].sum_ns);
		kb_json_u64(json, "longest_ns", waits[i].longest_ns);
		kb_json_string(json, "by", waker);
		kb_json_end(json);
	}
}

static void json_objects(struct top *top)
{
	struct kb_json *json = &top->json;
	uint32_t nr;
	const struct top_object *objects = name_objects(top, ROWS_OF_JSON, &nr);

	for (uint32_t i = 0; i < nr; i++) {
		const struct top_object *object = &objects[i];

		kb_json_begin(json, "waits_for");
		kb_json_u64(json, "tid", object->tid);
		kb_json_string(json, "task", object->row.task);
		report_put_object(json, &object->row);
		report_put_holder(json, &object->row);
		kb_json_u64(json, "tasks", object->nr_now);
		kb_json_u64(json, "now_ns", object->now_ns);
		kb_json_u64(json, "waits", object->waits);
		kb_json_u64(json, "sum_ns", object->sum_ns);
		kb_json_u64(json, "longest_ns", object->longest_ns);
		kb_json_end(json);
	}
}

static void show_json(struct top *top, struct view *view, const struct kbarman_stats *stats)
{
	struct kb_json *json = &top->json;
	char buffer[KB_TASK_NAME_BUFFER];
	const struct kb_sched_task *tasks;
	uint32_t nr, listed = 0;

	kb_json_begin(json, "interval");
	kb_json_i64(json, "from_ns", view->from_ns);
	kb_json_i64(json, "until_ns", view->until_ns);
	kb_json_u64(json, "records", view->records);
	kb_json_u64(json, "samples", view->samples);
	kb_json_u64(json, "lost", kb_stats_lost(stats) - kb_stats_lost(&top->stats));
	kb_json_end(json);
	for (uint32_t i = 0; i < view->header->max_cores; i++) {
		const struct kb_sched_cpu *cpu = kb_sched_cpu(view->sched, i);

		if (!cpu->seen)
			continue;
		kb_json_begin(json, "cpu");
		kb_json_u64(json, "cpu", i);
		kb_json_u64(json, "busy_ns", cpu->busy_ns);
		kb_json_u64(json, "awake_ns", cpu->awake_ns);
		kb_json_u64(json, "halted_ns", cpu->halted_ns);
		kb_json_end(json);
	}
	tasks = kb_sched_tasks(view->sched, &nr);
	for (uint32_t i = 0; i < nr && i < ROWS_OF_JSON; i++) {
		kb_json_begin(json, "task");
		kb_json_u64(json, "tid", tasks[i].key);
		kb_json_string(json, "task", kb_tasks_name(view->tasks, (uint32_t)tasks[i].key,
							   tasks[i].last_seen, buffer));
		kb_json_u64(json, "run_ns", tasks[i].run_ns);
		kb_json_u64(json, "runs", tasks[i].runs);
		kb_json_end(json);
	}
	if (view->has_objects)
		json_objects(top);
	json_waits(top, view);
	for (uint32_t i = 0; i < view->symbols.nr; i++) {
		const struct kb_sample_row row = kb_hot_row(view->hot, i);

		/* Limits rows other than those of the idle loop, which are few. */
		if (!row.idle && listed++ >= ROWS_OF_JSON)
			continue;
		kb_json_begin(json, "symbol");
		kb_json_string(json, "task", row.task);
		kb_json_string(json, "image", row.image);
		kb_json_string(json, "symbol", *row.symbol ? readable(top, row.symbol) : NULL);
		kb_json_u64(json, "samples", row.samples);
		kb_json_double(json, "percent", kb_percent(row.weight, view->totals.weight));
		kb_json_bool(json, "idle", row.idle);
		kb_json_end(json);
	}
}

static void measure_screen(struct top *top)
{
	top->rows = DEFAULT_ROWS;
	top->columns = top->screen ? DEFAULT_COLUMNS : 200;
	if (top->screen)
		kb_terminal_size(STDOUT_FILENO, &top->rows, &top->columns);
	if (top->rows < 15)
		top->rows = 15;
}

static void show(struct top *top, struct view *view, const struct kbarman_stats *stats)
{
	bool has_waits = top->sources & KBARMAN_SOURCE_WAKE;
	const unsigned int tables = 2 + has_waits + view->has_objects, of_head = 3 + 2 * tables;
	unsigned int rows, each;

	if (!top->people) {
		show_json(top, view, stats);
		return;
	}
	measure_screen(top);
	rows = top->rows - of_head;	/* with titles and the cursor's line */
	if (top->screen)
		kb_out_printf(top->json.out, "\033[H");
	put_head(top, view, stats);
	each = rows / (tables > 3 ? tables : 3);
	put_tasks(top, view, each);
	if (view->has_objects)
		put_objects(top, each);
	if (has_waits)
		put_waits(top, view, each);
	put_symbols(top, view, rows - (tables - 1) * each);
	if (top->screen)
		kb_out_printf(top->json.out, "\033[J");
	else
		put(top, "%s", "");
}

static int refresh(struct top *top)
{
	struct kbarman_stats stats = { 0 };
	struct view view = { 0 };
	struct kb_error err;
	int ret = open_view(top, &view);

	if (!ret && kb_device_stats(top->device, KBARMAN_CPU_ALL, &stats, &err))
		ret = cli_fail_error(&err);
	ret = ret ?: read_view(top, &view);
	if (!ret) {
		show(top, &view, &stats);
		top->stats = stats;
		if (kb_out_flush(top->json.out))
			ret = cli_fail("can't write standard output: %s",
				       strerror(-kb_out_error(top->json.out)));
	}
	if (top_objects_end(&top->objects) && !ret)
		ret = cli_fail("out of memory");
	close_view(&view);
	return ret;
}

/* ---- keys, signals, time ---- */

static int prepare(struct top *top)
{
	const char *term = getenv("TERM");
	struct termios raw;
	sigset_t mask;

	sigemptyset(&mask);
	sigaddset(&mask, SIGINT);
	sigaddset(&mask, SIGTERM);
	sigprocmask(SIG_BLOCK, &mask, NULL);
	top->signals = signalfd(-1, &mask, SFD_CLOEXEC);
	if (top->signals < 0)
		return cli_fail("signalfd: %s", strerror(errno));
	if (kb_out_fd(&top->json.out, STDOUT_FILENO))
		return cli_fail("out of memory");
	top->screen = top->people && isatty(STDOUT_FILENO) && isatty(STDIN_FILENO) && term &&
		      strcmp(term, "dumb") && !tcgetattr(STDIN_FILENO, &top->terminal);
	if (!top->screen)
		return 0;
	raw = top->terminal;
	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	tcsetattr(STDIN_FILENO, TCSANOW, &raw);
	kb_out_printf(top->json.out, "\033[H\033[J");
	return 0;
}

/* Waits for the next refresh. True: the user wants to end. */
static bool wait_for_more(struct top *top)
{
	struct pollfd fds[2] = {
		{ .fd = top->signals, .events = POLLIN },
		{ .fd = top->screen ? STDIN_FILENO : -1, .events = POLLIN },
	};
	char key;

	if (poll(fds, 2, (int)(top->delay * 1000)) <= 0)
		return false;
	if (fds[0].revents)
		return true;
	if (read(STDIN_FILENO, &key, 1) != 1)
		return true;
	return key == 'q' || key == 'Q' || key == 3;
}

static int create_cache(struct top *top)
{
	struct kb_error err;

	return kb_symbol_cache_create(&top->cache, &top->symbols, &err) ? cli_fail_error(&err) : 0;
}

static int run(struct top *top)
{
	int ret = create_cache(top) ?: begin(top) ?: prepare(top);

	/* The buffers are empty at first, so the first refresh is after a delay. */
	for (uint64_t i = 0; !ret && (!top->number || i < top->number); i++) {
		if (wait_for_more(top))
			break;
		ret = refresh(top);
	}
	if (top->screen)
		tcsetattr(STDIN_FILENO, TCSANOW, &top->terminal);
	return ret;
}

static int take_option(struct top *top, int option)
{
	int ret = sources_take(&top->sources, option, optarg);
	uint64_t ns;
	char *end;

	if (ret >= 0)
		return ret;
	switch (option) {
	case 'd':
		ret = cli_take_duration("-d", optarg, KB_NS_PER_S, KB_NS_PER_S / 10,
					3600 * KB_NS_PER_S, &ns);
		top->delay = (double)ns / 1e9;
		return ret;
	case 'n':
		top->number = strtoull(optarg, &end, 10);
		return *optarg >= '0' && *optarg <= '9' && !*end && top->number ? 0 :
			cli_fail("-n %s: not a number of refreshes", optarg);
	case 'F':
		top->frequency = strtoull(optarg, &end, 10);
		return *optarg >= '0' && *optarg <= '9' && !*end && top->frequency ? 0 :
			cli_fail("-F %s: not a number of samples per second", optarg);
	case 'e':
		return event_list_add(&top->events_text, optarg);
	case 'C':
		top->cpus_text = optarg;
		return 0;
	case 'j':
		top->people = false;
		return 0;
	case OPTION_NO_OBJECTS:
		top->no_objects = true;
		return 0;
	}
	return symbols_take(&top->symbols, option, optarg) ? 0 : cli_usage(option == 'h', &usage);
}

int cmd_top(int argc, char **argv)
{
	struct top top = {
		.delay = 2, .frequency = DEFAULT_HZ, .people = true, .signals = -1,
		.sources = SOURCES_USUAL,
		.symbols.size = sizeof(top.symbols),
	};
	int option, ret;

	while ((option = cli_getopt(argc, argv, &usage)) != -1) {
		ret = take_option(&top, option);
		if (ret || option == 'h')
			return ret;
	}
	if (optind < argc) {
		cli_warn("leave out '%s': top takes only options", argv[optind]);
		return cli_usage(false, &usage);
	}
	top.raw_names = top.symbols.raw_names;
	top.symbols.raw_names = true;
	top_objects_init(&top.objects);
	cli_decoder_start();
	ret = run(&top);
	top_objects_release(&top.objects);
	free(top.events_text);
	cli_decoder_report();
	kb_symbol_cache_destroy(top.cache);
	tdestroy(top.names, free_name);
	kb_demangler_release(&top.demangler);
	kb_out_destroy(top.json.out);
	kb_device_close(top.device);
	kb_event_plan_free(&top.plan);
	if (top.signals >= 0)
		close(top.signals);
	return ret;
}
