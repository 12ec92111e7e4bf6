// SPDX-License-Identifier: MIT
/*
 * A capture as a processed profile of the Firefox Profiler, version 49. Each task is a thread
 * with its samples, the CPU time between them, and its marks: those that programs wrote, how long the
 * task waited after it was woken, and what interrupted it. Counters follow.
 *
 * The format has columns for each thread instead of rows, so samples, marks and values are kept
 * in memory. The tables of a thread have only what its own samples refer to.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/time/idle.h"
#include "analysis/time/origin.h"
#include "base/array.h"
#include "base/text/json.h"
#include "export/keep.h"
#include "export/list.h"
#include "export/run.h"
#include "export/viewers/firefox_marks.h"

#define VERSION		49	/* of the processed format */
#define GECKO_VERSION	24	/* of the Gecko format that it was made from */

enum { CATEGORY_OTHER, CATEGORY_USER, CATEGORY_KERNEL, CATEGORY_IDLE };
enum { PHASE_INSTANT, PHASE_INTERVAL };
enum { RESOURCE_LIBRARY = 1 };

/* The increase of a counter of one CPU. */
struct value {
	uint32_t core, id, order;
	int64_t ns;
	uint64_t value;
};

/* The thread to which counters belong. */
struct main_thread {
	uint32_t task;		/* UINT32_MAX: there is none */
	uint32_t index;
	uint64_t cpu_ns;
	size_t samples;
};

struct list {
	void *rows;
	size_t nr, max;
};

struct firefox {
	KB_RUN;
	struct kb_keep samples;
	struct list marks, values;

	/* Of the thread that is being written: numbers in its own tables + 1; 0: not in them. */
	uint32_t *own_nodes, *own_frames;
	uint32_t *nodes, *frames;	/* the nodes and frames that have a number, in order */
	uint32_t nr_nodes, nr_frames;
};

#define SINK struct firefox
#include "export/sink.h"

/* ---- keeping ---- */

/* A new row of @size bytes; NULL without memory. */
static void *add_row(struct list *list, size_t size)
{
	if (list->nr == list->max) {
		void *rows = kb_array_grow(list->rows, &list->max, list->nr + 1, size, SIZE_MAX);

		if (!rows)
			return NULL;
		list->rows = rows;
	}
	return (char *)list->rows + list->nr++ * size;
}

static int64_t task_number(struct firefox *x, uint32_t task_id, uint64_t timestamp)
{
	int64_t task = kb_task_table_find(&x->tasks, task_id, timestamp);

	x->no_memory |= task < 0;
	return task;
}

static void keep_sample(struct firefox *x, const struct kb_walk *walk, uint32_t known, uint32_t node)
{
	int64_t task = task_number(x, walk->event.task_id, walk->event.timestamp);

	(void)known;
	x->no_memory |= kb_keep_add(&x->samples, &(struct kb_kept) {
		.ns = walk->ns, .cpu_ns = x->cpu_ns, .task = (uint32_t)task, .node = node }) != 0;
}

static void keep_value(struct firefox *x, const struct kb_walk *walk, uint32_t id, uint64_t number)
{
	struct value *value = add_row(&x->values, sizeof(*value));

	x->no_memory |= !value;
	if (value)
		*value = (struct value) {
			.core = walk->event.core,
			.id = id,
			.order = (uint32_t)x->values.nr,
			.ns = walk->ns,
			.value = number,
		};
}

/* Keep a mark of the task from @start to @end, of which all else is set behind that; NULL without memory. */
static struct kb_firefox_mark *keep_mark(struct firefox *x, int64_t task, int64_t start, int64_t end,
					 const char *text, size_t length)
{
	struct kb_firefox_mark *mark = task < 0 ? NULL : add_row(&x->marks, sizeof(*mark));

	if (mark) {
		*mark = (struct kb_firefox_mark) {
			.task = (uint32_t)task,
			.start = start,
			.end = end,
			.length = (uint32_t)length,
			.text = malloc(length + 1),
		};
		if (mark->text)
			memcpy(mark->text, text, length);
	}
	x->no_memory |= !mark || !mark->text;
	return mark;
}

static void keep_span(struct firefox *x, const struct kb_span *span, int64_t ns, bool instant)
{
	struct kb_firefox_mark *mark = keep_mark(x, span->task, span->start, ns, span->text, span->length);

	if (!mark)
		return;
	mark->channel = instant ? 0 : (uint32_t)span->key[1];
	mark->instant = instant;
}

static void keep_wakeup(struct firefox *x, const struct kb_arrow *wakeup)
{
	static const char text[] = "woken";
	int64_t task = task_number(x, wakeup->task_id, wakeup->timestamp);
	int64_t waker = task_number(x, wakeup->waker, wakeup->timestamp);
	struct kb_firefox_mark *mark = keep_mark(x, task, wakeup->from, wakeup->to, text,
						 sizeof(text) - 1);

	if (!mark)
		return;
	mark->kind = KB_FIREFOX_WAKEUP;
	mark->about = (uint32_t)waker;
	mark->context = wakeup->context;
}

static void keep_handler(struct firefox *x, const struct kb_handler *handler)
{
	int64_t task = task_number(x, handler->task_id, handler->timestamp);
	struct kb_firefox_mark *mark;
	char name[KB_ORIGIN_NAME];

	kb_origin_name(x->trace, &handler->origin, handler->timestamp, name, sizeof(name));
	mark = keep_mark(x, task, handler->start, handler->end, name, strlen(name));
	if (!mark)
		return;
	mark->kind = KB_FIREFOX_HANDLER;
	mark->about = handler->origin.id;
	mark->what = kb_origin_kind(handler->origin.kind);
}

static void keep_annotation(struct firefox *x, const struct kb_walk *walk)
{
	const struct kb_event *event = &walk->event;
	int64_t task = task_number(x, event->task_id, event->timestamp);
	bool instant = event->annotation.type != KB_ANNOTATION_STRING;
	struct kb_span span;
	int done = task < 0 ? 0 : kb_spans_feed(&x->spans, event, walk->ns, (uint32_t)task, &span);

	x->no_memory |= done < 0;
	if (done > 0)
		keep_span(x, &span, walk->ns, instant);
}

static int by_counter(const void *left, const void *right)
{
	const struct value *a = left, *b = right;

	if (a->core != b->core)
		return a->core < b->core ? -1 : 1;
	if (a->id != b->id)
		return a->id < b->id ? -1 : 1;
	if (a->ns != b->ns)
		return a->ns < b->ns ? -1 : 1;
	return a->order < b->order ? -1 : 1;
}

/* ---- tables of a thread ---- */

static int compare_numbers(const void *left, const void *right)
{
	uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;

	return a < b ? -1 : a > b;
}

/* Number the nodes to which the samples refer, callers first, and their frames. */
static void choose_nodes(struct firefox *x, const struct kb_kept *samples, size_t nr)
{
	uint32_t i, node, frame;
	size_t s;

	x->nr_nodes = x->nr_frames = 0;
	for (s = 0; s < nr; s++) {
		for (node = samples[s].node; node && !x->own_nodes[node];
		     node = kb_stack_node(&x->stacks, node)->parent) {
			x->own_nodes[node] = 1;
			x->nodes[x->nr_nodes++] = node;
		}
	}
	qsort(x->nodes, x->nr_nodes, sizeof(*x->nodes), compare_numbers);
	for (i = 0; i < x->nr_nodes; i++) {
		x->own_nodes[x->nodes[i]] = i + 1;
		frame = kb_stack_node(&x->stacks, x->nodes[i])->frame;
		if (x->own_frames[frame])
			continue;
		x->frames[x->nr_frames++] = frame;
		x->own_frames[frame] = x->nr_frames;
	}
}

static void forget_nodes(struct firefox *x)
{
	uint32_t i;

	for (i = 0; i < x->nr_nodes; i++)
		x->own_nodes[x->nodes[i]] = 0;
	for (i = 0; i < x->nr_frames; i++)
		x->own_frames[x->frames[i]] = 0;
}

static uint32_t category_of(const struct firefox *x, uint32_t frame)
{
	const struct kb_stack_frame *of = kb_stack_frame(&x->stacks, frame);

	if (!of->kernel)
		return CATEGORY_USER;
	return kb_idle_name(of->name) ? CATEGORY_IDLE : CATEGORY_KERNEL;
}

/* Write a column with @nr equal literals: an integer, or null with @null. */
static void write_same(struct firefox *x, const char *key, size_t nr, bool null, int64_t value)
{
	kb_json_array(&x->json, key);
	while (nr--) {
		if (null)
			kb_json_string(&x->json, NULL, NULL);
		else
			kb_json_i64(&x->json, NULL, value);
	}
	kb_json_array_end(&x->json);
}

static void write_false(struct firefox *x, const char *key, size_t nr)
{
	kb_json_array(&x->json, key);
	while (nr--)
		kb_json_bool(&x->json, NULL, false);
	kb_json_array_end(&x->json);
}

/* Write a column with the numbers @first, @first + 1, … */
static void write_range(struct firefox *x, const char *key, size_t nr, uint64_t first)
{
	size_t i;

	kb_json_array(&x->json, key);
	for (i = 0; i < nr; i++)
		kb_json_u64(&x->json, NULL, first + i);
	kb_json_array_end(&x->json);
}

static void write_stack_table(struct firefox *x)
{
	uint32_t i;

	kb_json_object(&x->json, "stackTable");
	kb_json_u64(&x->json, "length", x->nr_nodes);
	kb_json_array(&x->json, "frame");
	for (i = 0; i < x->nr_nodes; i++)
		kb_json_u64(&x->json, NULL,
			    x->own_frames[kb_stack_node(&x->stacks, x->nodes[i])->frame] - 1);
	kb_json_array_end(&x->json);
	kb_json_array(&x->json, "prefix");
	for (i = 0; i < x->nr_nodes; i++) {
		uint32_t parent = kb_stack_node(&x->stacks, x->nodes[i])->parent;

		if (parent)
			kb_json_u64(&x->json, NULL, x->own_nodes[parent] - 1);
		else
			kb_json_string(&x->json, NULL, NULL);
	}
	kb_json_array_end(&x->json);
	kb_json_array(&x->json, "category");
	for (i = 0; i < x->nr_nodes; i++)
		kb_json_u64(&x->json, NULL,
			    category_of(x, kb_stack_node(&x->stacks, x->nodes[i])->frame));
	kb_json_array_end(&x->json);
	write_same(x, "subcategory", x->nr_nodes, false, 0);
	kb_json_object_end(&x->json);
}

/* Each frame is a function of its own. Strings begin with the names of these functions. */
static void write_frame_tables(struct firefox *x)
{
	uint32_t nr = x->nr_frames, i;

	kb_json_object(&x->json, "frameTable");
	kb_json_u64(&x->json, "length", nr);
	write_same(x, "address", nr, false, -1);
	write_same(x, "inlineDepth", nr, false, 0);
	kb_json_array(&x->json, "category");
	for (i = 0; i < nr; i++)
		kb_json_u64(&x->json, NULL, category_of(x, x->frames[i]));
	kb_json_array_end(&x->json);
	write_same(x, "subcategory", nr, false, 0);
	write_range(x, "func", nr, 0);
	write_same(x, "nativeSymbol", nr, true, 0);
	write_same(x, "innerWindowID", nr, false, 0);
	write_same(x, "implementation", nr, true, 0);
	write_same(x, "line", nr, true, 0);
	write_same(x, "column", nr, true, 0);
	kb_json_object_end(&x->json);
	kb_json_object(&x->json, "funcTable");
	kb_json_u64(&x->json, "length", nr);
	write_range(x, "name", nr, 0);
	write_false(x, "isJS", nr);
	write_false(x, "relevantForJS", nr);
	kb_json_array(&x->json, "resource");
	for (i = 0; i < nr; i++)
		kb_json_u64(&x->json, NULL, kb_stack_frame(&x->stacks, x->frames[i])->image);
	kb_json_array_end(&x->json);
	write_same(x, "fileName", nr, true, 0);
	write_same(x, "lineNumber", nr, true, 0);
	write_same(x, "columnNumber", nr, true, 0);
	kb_json_object_end(&x->json);
}

/* Write the strings: names of functions, of all images, and of the thread's marks. */
static void write_strings(struct firefox *x, const struct kb_firefox_mark *marks, size_t nr_marks)
{
	char label[KB_STACK_LABEL];
	uint32_t i;
	size_t m;

	kb_json_array(&x->json, "stringArray");
	for (i = 0; i < x->nr_frames; i++)
		kb_json_text(&x->json, NULL, label, kb_stack_label(&x->stacks, x->frames[i], label));
	for (i = 0; i < x->stacks.images.nr; i++)
		kb_json_string(&x->json, NULL, kb_stack_image(&x->stacks, i)->base_name);
	for (m = 0; m < nr_marks; m++)
		kb_json_text(&x->json, NULL, marks[m].text, marks[m].length);
	kb_json_array_end(&x->json);
}

static void write_resources(struct firefox *x)
{
	uint32_t nr = x->stacks.images.nr;

	kb_json_object(&x->json, "resourceTable");
	kb_json_u64(&x->json, "length", nr);
	write_range(x, "lib", nr, 0);
	write_range(x, "name", nr, x->nr_frames);
	write_same(x, "host", nr, true, 0);
	write_same(x, "type", nr, false, RESOURCE_LIBRARY);
	kb_json_object_end(&x->json);
	kb_json_object(&x->json, "nativeSymbols");
	kb_json_u64(&x->json, "length", 0);
	write_range(x, "libIndex", 0, 0);
	write_range(x, "address", 0, 0);
	write_range(x, "name", 0, 0);
	write_range(x, "functionSize", 0, 0);
	kb_json_object_end(&x->json);
}

static void write_samples(struct firefox *x, const struct kb_kept *samples, size_t nr)
{
	size_t i;

	kb_json_object(&x->json, "samples");
	kb_json_u64(&x->json, "length", nr);
	kb_json_array(&x->json, "stack");
	for (i = 0; i < nr; i++)
		kb_json_u64(&x->json, NULL, x->own_nodes[samples[i].node] - 1);
	kb_json_array_end(&x->json);
	kb_json_array(&x->json, "time");
	for (i = 0; i < nr; i++)
		kb_json_fixed(&x->json, NULL, samples[i].ns, 6);	/* milliseconds */
	kb_json_array_end(&x->json);
	kb_json_string(&x->json, "weight", NULL);
	kb_json_string(&x->json, "weightType", "samples");
	kb_json_array(&x->json, "threadCPUDelta");
	for (i = 0; i < nr; i++)
		kb_json_fixed(&x->json, NULL, (int64_t)samples[i].cpu_ns, 3);	/* microseconds */
	kb_json_array_end(&x->json);
	kb_json_object_end(&x->json);
}

static void write_markers(struct firefox *x, const struct kb_firefox_mark *marks, size_t nr)
{
	size_t i;

	kb_json_object(&x->json, "markers");
	kb_json_u64(&x->json, "length", nr);
	write_range(x, "name", nr, x->nr_frames + x->stacks.images.nr);
	kb_json_array(&x->json, "startTime");
	for (i = 0; i < nr; i++)
		kb_json_fixed(&x->json, NULL, marks[i].start, 6);
	kb_json_array_end(&x->json);
	kb_json_array(&x->json, "endTime");
	for (i = 0; i < nr; i++) {
		if (marks[i].instant)
			kb_json_string(&x->json, NULL, NULL);
		else
			kb_json_fixed(&x->json, NULL, marks[i].end, 6);
	}
	kb_json_array_end(&x->json);
	kb_json_array(&x->json, "phase");
	for (i = 0; i < nr; i++)
		kb_json_u64(&x->json, NULL, marks[i].instant ? PHASE_INSTANT : PHASE_INTERVAL);
	kb_json_array_end(&x->json);
	write_same(x, "category", nr, false, CATEGORY_OTHER);
	kb_json_array(&x->json, "data");
	for (i = 0; i < nr; i++)
		kb_firefox_mark_data(&x->json, &x->tasks, &marks[i]);
	kb_json_array_end(&x->json);
	kb_json_object_end(&x->json);
}

static void write_pid(struct firefox *x, const struct kb_task_id *task)
{
	char pid[16];

	snprintf(pid, sizeof(pid), "%" PRIu32, task->tgid);
	kb_json_string(&x->json, "pid", pid);
}

static void write_thread(struct firefox *x, uint32_t number, const struct kb_kept *samples,
			 size_t nr_samples, const struct kb_firefox_mark *marks, size_t nr_marks)
{
	const struct kb_task_id *task = kb_task_id(&x->tasks, number);
	struct kb_text process = kb_names_task(x->trace->names, task->tgid, UINT64_MAX)->name;
	char label[KB_TASK_LABEL];

	choose_nodes(x, samples, nr_samples);
	kb_json_object(&x->json, NULL);
	kb_json_text(&x->json, "name", label, kb_task_label(&x->tasks, number, label));
	kb_json_string(&x->json, "processType", "default");
	kb_json_text(&x->json, "processName", process.data, process.length);
	kb_json_bool(&x->json, "isMainThread", task->key[0] == task->tgid);
	write_pid(x, task);
	kb_json_u64(&x->json, "tid", task->key[0]);
	kb_json_fixed(&x->json, "processStartupTime", kb_shown_first(x->trace), 6);
	kb_json_string(&x->json, "processShutdownTime", NULL);
	kb_json_fixed(&x->json, "registerTime", kb_shown_first(x->trace), 6);
	kb_json_string(&x->json, "unregisterTime", NULL);
	write_range(x, "pausedRanges", 0, 0);
	write_samples(x, samples, nr_samples);
	write_markers(x, marks, nr_marks);
	write_stack_table(x);
	write_frame_tables(x);
	write_resources(x);
	write_strings(x, marks, nr_marks);
	kb_json_object_end(&x->json);
	forget_nodes(x);
}

static bool is_busier(const struct main_thread *thread, const struct main_thread *than)
{
	return thread->cpu_ns > than->cpu_ns ||
	       (thread->cpu_ns == than->cpu_ns && thread->samples > than->samples);
}

/*
 * Write all threads. Samples and marks are both ordered by task. The profiler shows tracks only
 * of a process with a busy thread, so counters go to the busiest thread.
 */
static void write_threads(struct firefox *x, struct main_thread *main)
{
	struct main_thread thread = { 0 };
	const struct kb_firefox_mark *marks = x->marks.rows;
	size_t s = 0, m = 0, i, nr_samples, nr_marks;
	uint32_t task;

	kb_json_array(&x->json, "threads");
	while (s < x->samples.nr || m < x->marks.nr) {
		task = s < x->samples.nr ? x->samples.rows[s].task : UINT32_MAX;
		if (m < x->marks.nr && marks[m].task < task)
			task = marks[m].task;
		nr_samples = s < x->samples.nr && x->samples.rows[s].task == task ?
			kb_keep_run(&x->samples, s) : 0;
		for (nr_marks = 0; m + nr_marks < x->marks.nr && marks[m + nr_marks].task == task;)
			nr_marks++;
		write_thread(x, task, nr_samples ? x->samples.rows + s : NULL, nr_samples,
			     nr_marks ? marks + m : NULL, nr_marks);
		thread.task = task;
		thread.samples = nr_samples;
		thread.cpu_ns = 0;
		for (i = 0; i < nr_samples; i++)
			thread.cpu_ns += x->samples.rows[s + i].cpu_ns;
		if (!thread.index || is_busier(&thread, main))
			*main = thread;
		thread.index++;
		s += nr_samples;
		m += nr_marks;
	}
	kb_json_array_end(&x->json);
}

/* ---- the rest of the profile ---- */

static void write_category(struct firefox *x, const char *name, const char *colour)
{
	kb_json_object(&x->json, NULL);
	kb_json_string(&x->json, "name", name);
	kb_json_string(&x->json, "color", colour);
	kb_json_array(&x->json, "subcategories");
	kb_json_string(&x->json, NULL, "Other");
	kb_json_array_end(&x->json);
	kb_json_object_end(&x->json);
}

static void write_meta(struct firefox *x)
{
	const char *command = kb_barman_fact(x->trace->barman, "command");
	const char *target = kb_trace_header(x->trace)->target_name;
	const char *kernel = kb_barman_fact(x->trace->barman, "release");

	kb_json_object(&x->json, "meta");
	kb_json_u64(&x->json, "version", GECKO_VERSION);
	kb_json_u64(&x->json, "preprocessedProfileVersion", VERSION);
	kb_json_double(&x->json, "interval", 1.0);	/* ms; samples have their own times */
	kb_json_fixed(&x->json, "startTime",
		      (int64_t)kb_trace_header(x->trace)->unix_base_ns, 6);
	kb_json_u64(&x->json, "processType", 0);
	kb_json_string(&x->json, "product", command ? command : target ? target : "kbarman");
	kb_json_string(&x->json, "importedFrom", "kbarman");
	kb_json_string(&x->json, "oscpu", kernel ? kernel : "Linux");
	kb_json_u64(&x->json, "logicalCPUs", kb_trace_header(x->trace)->max_cores);
	kb_json_u64(&x->json, "stackwalk", 1);
	kb_json_bool(&x->json, "debug", false);
	kb_json_bool(&x->json, "symbolicated", true);
	kb_json_bool(&x->json, "usesOnlyOneStackType", true);
	kb_json_bool(&x->json, "sourceCodeIsNotOnSearchfox", true);
	kb_json_object(&x->json, "sampleUnits");
	kb_json_string(&x->json, "time", "ms");
	kb_json_string(&x->json, "eventDelay", "ms");
	kb_json_string(&x->json, "threadCPUDelta", "µs");
	kb_json_object_end(&x->json);
	kb_json_array(&x->json, "categories");
	write_category(x, "Other", "grey");
	write_category(x, "User", "yellow");
	write_category(x, "Kernel", "blue");
	write_category(x, "Idle", "transparent");
	kb_json_array_end(&x->json);
	kb_firefox_mark_schemas(&x->json);
	write_range(x, "pausedRanges", 0, 0);
	kb_json_object_end(&x->json);
}

/*
 * A build-id in the form that symbol servers expect: the byte order of its first three numbers
 * is swapped, and an age follows.
 */
static void breakpad_id(const struct kb_build_id *id, char text[34])
{
	static const uint8_t order[16] = { 3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15 };
	int i;

	for (i = 0; i < 16; i++)
		snprintf(text + 2 * i, 3, "%02X", id && order[i] < id->length ?
			 id->bytes[order[i]] : 0);
	memcpy(text + 32, "0", 2);
}

static void write_libs(struct firefox *x)
{
	char id[34], code[KB_BUILD_ID_TEXT];
	uint32_t i;

	kb_json_array(&x->json, "libs");
	for (i = 0; i < x->stacks.images.nr; i++) {
		const struct kb_stack_image *image = kb_stack_image(&x->stacks, i);

		breakpad_id(image->build_id, id);
		kb_build_id_text(code, image->build_id);
		kb_json_object(&x->json, NULL);
		kb_json_string(&x->json, "name", image->base_name);
		kb_json_string(&x->json, "path", image->path);
		kb_json_string(&x->json, "debugName", image->base_name);
		kb_json_string(&x->json, "debugPath", image->path);
		kb_json_string(&x->json, "breakpadId", id);
		kb_json_string(&x->json, "codeId", image->build_id ? code : NULL);
		kb_json_string(&x->json, "arch", NULL);
		kb_json_object_end(&x->json);
	}
	kb_json_array_end(&x->json);
}

/* Write one counter of one CPU. @main must have a thread. */
static void write_counter(struct firefox *x, const struct value *values, size_t nr,
			  const struct main_thread *main)
{
	struct kb_text name = kb_names_counter(x->trace->names, values->id);
	char text[KB_TASK_LABEL];
	int cpu = snprintf(text, sizeof(text), "CPU %" PRIu32 " ", values->core);
	size_t i;

	if (name.length > sizeof(text) - (size_t)cpu)
		name.length = sizeof(text) - (size_t)cpu;
	memcpy(text + cpu, name.data, name.length);
	kb_json_object(&x->json, NULL);
	kb_json_text(&x->json, "name", text, (size_t)cpu + name.length);
	kb_json_string(&x->json, "category", "PMU");
	kb_json_string(&x->json, "description", "what the counter advanced since its value before");
	write_pid(x, kb_task_id(&x->tasks, main->task));
	kb_json_u64(&x->json, "mainThreadIndex", main->index);
	kb_json_object(&x->json, "samples");
	kb_json_u64(&x->json, "length", nr);
	kb_json_array(&x->json, "time");
	for (i = 0; i < nr; i++)
		kb_json_fixed(&x->json, NULL, values[i].ns, 6);
	kb_json_array_end(&x->json);
	kb_json_array(&x->json, "count");
	for (i = 0; i < nr; i++)
		kb_json_u64(&x->json, NULL, values[i].value);
	kb_json_array_end(&x->json);
	kb_json_object_end(&x->json);
	kb_json_object_end(&x->json);
}

/* Write all counters. Without a thread they have no place and are left out. */
static void write_counters(struct firefox *x, const struct main_thread *main)
{
	const struct value *values = x->values.rows;
	size_t at, nr;

	kb_json_array(&x->json, "counters");
	for (at = 0; at < x->values.nr && main->task != UINT32_MAX; at += nr) {
		for (nr = 1; at + nr < x->values.nr && values[at + nr].core == values[at].core &&
		     values[at + nr].id == values[at].id;)
			nr++;
		write_counter(x, &values[at], nr, main);
	}
	kb_json_array_end(&x->json);
}

static int write_all(struct firefox *x)
{
	struct main_thread main = { .task = UINT32_MAX };

	kb_keep_sort(&x->samples);
	if (x->marks.nr)
		qsort(x->marks.rows, x->marks.nr, sizeof(struct kb_firefox_mark), kb_firefox_mark_order);
	if (x->values.nr)
		qsort(x->values.rows, x->values.nr, sizeof(struct value), by_counter);
	x->own_nodes = calloc(x->stacks.nodes.nr, sizeof(*x->own_nodes));
	x->own_frames = calloc((size_t)x->stacks.frames.nr + 1, sizeof(*x->own_frames));
	x->nodes = calloc(x->stacks.nodes.nr, sizeof(*x->nodes));
	x->frames = calloc((size_t)x->stacks.frames.nr + 1, sizeof(*x->frames));
	if (!x->own_nodes || !x->own_frames || !x->nodes || !x->frames)
		return -ENOMEM;
	kb_json_object(&x->json, NULL);
	write_meta(x);
	write_libs(x);
	write_range(x, "pages", 0, 0);
	write_range(x, "profilerOverhead", 0, 0);
	write_threads(x, &main);
	write_counters(x, &main);
	kb_json_object_end(&x->json);
	kb_out_bytes(x->out, "\n", 1);
	return 0;
}

/* ---- all of it ---- */

static int end(struct firefox *x)
{
	struct kb_span span;

	while (!x->no_memory && kb_spans_end(&x->spans, &span))
		keep_span(x, &span, kb_shown_last(x->trace), false);
	x->no_memory = x->no_memory || write_all(x);
	if (!x->samples.nr)
		kb_export_say(x->options, "the capture has no samples with an address");
	return 0;
}

static void release(struct firefox *x)
{
	struct kb_firefox_mark *marks = x->marks.rows;
	size_t i;

	for (i = 0; i < x->marks.nr; i++)
		free(marks[i].text);
	free(x->marks.rows);
	free(x->values.rows);
	free(x->own_nodes);
	free(x->own_frames);
	free(x->nodes);
	free(x->frames);
	kb_keep_release(&x->samples);
}

static const struct sink sink = {
	.uses = KB_USES_STACKS | KB_USES_PAIRS | KB_USES_TIMES | KB_USES_RUNNING,
	.end = end,
	.release = release,
	.woken = keep_wakeup,
	.handled = keep_handler,
	.call = keep_sample,
	.counter = keep_value,
	.mark = keep_annotation,
};

const struct kb_export kb_export_firefox = {
	.name = "firefox",
	.extension = ".firefox.json",
	.description = "Firefox Profiler (processed profile 49): samples, CPU time, marks",
	.run = sink_export,
};
