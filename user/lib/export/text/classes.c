// SPDX-License-Identifier: MIT
/*
 * Where the time of tasks and CPUs went, for people: tasks that did most come first, not those
 * that slept.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <kbarman/report_text.h>

#include "analysis/time/ended.h"
#include "base/array.h"
#include "base/options.h"
#include "base/percent.h"
#include "export/text/latency_put.h"

static const struct words {
	const char *column, *words;
} words[KB_CLASSES] = {
	[KB_CLASS_USER] = { "User", "user" },
	[KB_CLASS_CALL] = { "Calls", "system calls" },
	[KB_CLASS_FAULT] = { "Faults", "page faults" },
	[KB_CLASS_IRQ] = { "Irqs", "interrupts" },
	[KB_CLASS_SOFTIRQ] = { "Softirqs", "softirqs" },
	[KB_CLASS_KERNEL] = { "Kernel", "kernel, other" },
	[KB_CLASS_RUNNING] = { "Not told", "user or kernel, which is not told" },
	[KB_CLASS_RUNNABLE] = { NULL, "runnable" },
	[KB_CLASS_WAIT] = { NULL, "waiting" },
	[KB_CLASS_IDLE] = { "Idle", "idle" },
	[KB_CLASS_OFFLINE] = { "Offline", "offline" },
	[KB_CLASS_UNKNOWN] = { "Unknown", "not known" },
};

static uint64_t sum_of(const uint64_t ns[KB_CLASSES])
{
	uint64_t sum = 0;

	for (unsigned int i = 0; i < KB_CLASSES; i++)
		sum += ns[i];
	return sum;
}

static bool is_on_cpu(enum kb_class kind)
{
	return kind < KB_CLASS_RUNNABLE;
}

/* What was on a CPU, or wanted to be. */
static uint64_t active(const uint64_t ns[KB_CLASSES])
{
	return sum_of(ns) - ns[KB_CLASS_WAIT] - ns[KB_CLASS_UNKNOWN];
}

static void put_missing(const struct latency_text *text, bool there, const char *what,
			const char *sources)
{
	if (!there)
		text_printf(&text->put,
			    "#            %s: 'kbarman record --sources %s' records them\n", what,
			    sources);
}

static void put_head(const struct latency_text *text, const struct kb_classes *classes,
		     const char *capture)
{
	text_put_capture(&text->put, capture);
	text_printf(&text->put, "# recorded : %.6f s\n# tasks    : %.6f s\n",
		    (double)classes->duration_ns / 1e9, (double)sum_of(classes->ns) / 1e9);
	if (classes->only_some)
		text_printf(&text->put, "#            the recording was limited to some processes: "
					"what others did is not known\n");
	put_missing(text, classes->has_calls,
		    "system calls are not told from the programs' own code", "syscalls");
	put_missing(text, classes->has_faults, "page faults are in what they came from", "faults");
	put_missing(text, classes->has_interrupts,
		    "interrupts and softirqs are in what they interrupted", "irq,softirq");
	put_missing(text, classes->has_wakeups, "a wait lasts until its task runs, without wakeups",
		    "wake");
	if (!classes->has_objects)
		text_printf(&text->put,
			    "#            the capture does not say what tasks waited for\n");
	text_put_damage(&text->put, classes->damaged);
	text_put_only(&text->put, text->put.options.filter);
}

static void put_sums(const struct latency_text *text, const struct kb_classes *classes)
{
	uint64_t all = sum_of(classes->ns);

	text_put_chosen(&text->put, "Time of tasks by class", false);
	text_printf(&text->put, "#    Sum (ms)   Share  Class\n#\n");
	for (unsigned int kind = 0; kind < KB_CLASSES; kind++) {
		if (!classes->ns[kind])
			continue;
		text_printf(&text->put, "%13.3f", text_ms(classes->ns[kind]));
		text_put_share(&text->put, classes->ns[kind], all, 7);
		text_printf(&text->put, "  %s\n", words[kind].words);
	}
}

static void put_cpus(const struct latency_text *text, const struct kb_classes *classes)
{
	bool used[KB_CLASSES] = { 0 };

	for (uint32_t i = 0; i < classes->nr_cpus; i++)
		for (unsigned int kind = 0; kind < KB_CLASSES; kind++)
			used[kind] |= classes->cpus[i].ns[kind];
	text_put_chosen(&text->put, "Time of CPUs by class (ms)", true);
	text_printf(&text->put, "#  CPU");
	for (unsigned int kind = 0; kind < KB_CLASSES; kind++)
		if (used[kind])
			text_printf(&text->put, "  %11s", words[kind].column);
	text_printf(&text->put, "\n#\n");
	for (uint32_t i = 0; i < classes->nr_cpus; i++) {
		text_printf(&text->put, "%6" PRIu32, classes->cpus[i].cpu);
		for (unsigned int kind = 0; kind < KB_CLASSES; kind++)
			if (used[kind])
				text_printf(&text->put, "  %11.3f",
					    text_ms(classes->cpus[i].ns[kind]));
		text_printf(&text->put, "\n");
	}
}

/* ---- tasks ---- */

static const char *state_words(char letter)
{
	switch (letter) {
	case KB_LETTER_SLEEPING:
		return "asleep";
	case KB_LETTER_DISK_SLEEP:
		return "uninterruptible";
	case KB_LETTER_IDLE:
		return "idle, for work";
	case KB_LETTER_STOPPED:
		return "stopped";
	case KB_LETTER_TRACED:
		return "traced";
	case KB_LETTER_PARKED:
		return "parked";
	default:
		return "[unknown]";
	}
}

static void put_call(const struct latency_text *text, const struct kb_class_row *row)
{
	if (row->name)
		text_put(&text->put, row->name, 0);
	else if (row->known)
		text_printf(&text->put, "[call %" PRIu32 "]", row->number);
	else
		text_printf(&text->put, "[unknown]");
}

static void put_what(const struct latency_text *text, const struct kb_class_row *row)
{
	switch (row->kind) {
	case KB_CLASS_CALL:
		text_printf(&text->put, "in ");
		put_call(text, row);
		break;
	case KB_CLASS_FAULT:
		text_printf(&text->put, "page faults, %s", row->name);
		break;
	case KB_CLASS_RUNNING:
		text_printf(&text->put, row->known ? "user or " : "user or kernel");
		if (row->known)
			put_call(text, row);
		break;
	case KB_CLASS_WAIT:
		text_printf(&text->put, "waiting: ");
		if (row->wait)
			latency_put_object(text, row->wait);
		else if (row->inferred)
			latency_put_inferred(text, row->inferred);
		else
			text_printf(&text->put, "%s", state_words(row->state));
		break;
	default:
		text_printf(&text->put, "%s", words[row->kind].words);
	}
	text_printf(&text->put, "\n");
}

static void put_rows(const struct latency_text *text, const struct kb_classes_task *task)
{
	uint64_t whole = sum_of(task->ns), on = active(task->ns), rest_ns = 0;
	uint32_t rest = 0;

	for (uint32_t i = 0; i < task->nr; i++) {
		const struct kb_class_row *row = &task->rows[i];
		bool is_active = is_on_cpu(row->kind) || row->kind == KB_CLASS_RUNNABLE;

		if (kb_percent(row->ns, is_active ? on : whole) < text->options.percent_limit) {
			rest++;
			rest_ns += row->ns;
			continue;
		}
		text_printf(&text->put, "%13.3f", text_ms(row->ns));
		text_put_share(&text->put, row->ns, whole, 7);
		text_printf(&text->put, "    ");
		put_what(text, row);
	}
	if (rest)
		text_printf(&text->put, "%13.3f         #   %" PRIu32 " smaller\n",
			    text_ms(rest_ns), rest);
}

static int compare(const void *left, const void *right)
{
	const struct kb_classes_task *const *a = left, *const *b = right;
	uint64_t a_ns = active((*a)->ns), b_ns = active((*b)->ns);

	if (a_ns != b_ns)
		return a_ns > b_ns ? -1 : 1;
	return (*a > *b) - (*a < *b);
}

static int put_tasks(const struct latency_text *text, const struct kb_classes *classes)
{
	const struct kb_classes_task **sorted =
		calloc((size_t)classes->nr_tasks + 1, sizeof(*sorted));
	uint64_t all = active(classes->ns);
	uint32_t rest = 0;

	if (!sorted)
		return -ENOMEM;
	for (uint32_t i = 0; i < classes->nr_tasks; i++)
		sorted[i] = &classes->tasks[i];
	qsort(sorted, classes->nr_tasks, sizeof(*sorted), compare);
	text_put_chosen(&text->put,
			"Time of tasks, those first that had or wanted a CPU for longest", false);
	text_printf(&text->put, "#    Sum (ms)   Share  Task / Class\n#\n");
	for (uint32_t i = 0; i < classes->nr_tasks; i++) {
		const struct kb_classes_task *task = sorted[i];

		if (kb_percent(active(task->ns), all) < text->options.percent_limit) {
			rest++;
			continue;
		}
		text_printf(&text->put, "%13.3f         ", text_ms(sum_of(task->ns)));
		text_put(&text->put, task->name, 0);
		text_printf(&text->put, "\n");
		put_rows(text, task);
	}
	free(sorted);
	latency_put_rest(text, rest, "task");
	return 0;
}

int kb_classes_text(const struct kb_classes *classes, struct kb_trace *trace,
		    const struct kb_classes_text_options *options, struct kb_out *out,
		    struct kb_error *err)
{
	struct latency_text text = {
		.put = { .out = out, .trace = trace, .tasks = kb_trace_tasks(trace, NULL) },
		.trace = trace,
	};
	struct kb_classes_text_options how;
	int ret = KB_OPTIONS(&how, options, err);

	if (ret)
		return ret;
	text.put.options.filter = how.filter;
	text.options.percent_limit = how.percent_limit;
	put_head(&text, classes, how.capture);
	put_sums(&text, classes);
	put_cpus(&text, classes);
	return text_end(&text.put, put_tasks(&text, classes), err);
}
