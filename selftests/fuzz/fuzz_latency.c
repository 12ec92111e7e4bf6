// SPDX-License-Identifier: MIT
/*
 * Fuzz target of the reports of latencies, of the critical path, of what took time and where time went: a capture with
 * whatever in its header and records. Whatever they say must add up, and be UTF-8. The last byte, which stands
 * behind the records of most captures, says of which task the path is.
 */
#include <stdlib.h>
#include <string.h>

#include <kbarman/report_text.h>

#include "base/text/utf8.h"

static void must(bool good)
{
	if (!good)
		abort();
}

static void check_text(struct kb_out *out)
{
	uint32_t code;
	size_t size;
	const char *data = kb_out_data(out, &size);

	for (size_t i = 0, length; i < size; i += length) {
		length = kb_utf8_next(data + i, size - i, &code);
		/* what stands for broken bytes, not what was written as U+FFFD */
		must(code != KB_UTF8_REPLACEMENT || (length == 3 && (uint8_t)data[i] == 0xef));
	}
}

static uint64_t sum_of(const uint64_t *parts, unsigned int nr)
{
	uint64_t sum = 0;

	while (nr)
		sum += parts[--nr];
	return sum;
}

static void check_waits(const struct kb_latency *latency)
{
	uint64_t waits = 0;

	for (uint32_t i = 0; i < latency->nr_tasks; i++) {
		const struct kb_latency_task *task = &latency->tasks[i];

		waits += task->woken.count;
		must(sum_of(task->woken_parts, KB_PARTS) == task->woken.sum_ns);
		must(sum_of(task->preempted_parts, KB_PARTS) == task->preempted.sum_ns);
		must(task->woken.median_ns <= task->woken.p99_ns &&
		     task->woken.p99_ns <= task->woken.max_ns);
	}
	must(waits == latency->woken.count);
	for (uint32_t i = 0; i < latency->nr_worst; i++)
		must(sum_of(latency->worst[i].parts, KB_PARTS) == latency->worst[i].ns);
}

static void check_latency(struct kb_trace *trace, unsigned int choice)
{
	const struct kb_filter filter = {
		.size = sizeof(filter), .has_time = choice & 1, .until = 1000000000,
	};
	const struct kb_latency_options options = { .size = sizeof(options), .filter = &filter };
	const struct kb_latency_text_options how = {
		.size = sizeof(how), .waits = true, .interrupts = true,
	};
	uint32_t max_cores = kb_trace_header(trace)->max_cores;
	const struct kb_latency *latency;
	struct kb_error err;
	struct kb_out *out;

	if (kb_latency_create(&latency, trace, &options, &err) < 0)
		return;
	check_waits(latency);
	for (uint32_t i = 0; i < max_cores; i++)
		must(sum_of(latency->cpus[i].ns, KB_TILE_KINDS) ==
		     (uint64_t)latency->cpus[i].last - (uint64_t)latency->cpus[i].first);
	must(!kb_out_memory(&out) && !kb_latency_text(latency, trace, &how, out, &err));
	check_text(out);
	kb_out_destroy(out);
	kb_latency_destroy(latency);
}

static void check_links(const struct kb_path *path)
{
	for (uint64_t i = 0; i < path->nr; i++)
		must(path->links[i].end > path->links[i].start &&
		     path->links[i].start == (i ? path->links[i - 1].end : path->from));
	must(!path->nr || path->links[path->nr - 1].end == path->until);
}

static void check_path(struct kb_trace *trace, unsigned int choice)
{
	const struct kb_filter filter = {
		.size = sizeof(filter), .has_time = true, .from = 10000, .until = 1000000,
	};
	struct kb_path_options options = {
		.size = sizeof(options), .has_tid = true, .tid = choice / 2 % 16,
	};
	const struct kb_path *path;
	struct kb_error err;
	struct kb_out *out;

	if (choice & 1) {
		options.from = "begin";
		options.until = "end";
	} else if (choice & 32) {
		options.filter = &filter;
	}
	if (kb_path_create(&path, trace, &options, &err) < 0)
		return;
	check_links(path);
	must(!kb_out_memory(&out) && !kb_path_text(path, trace, "capture", out, &err));
	check_text(out);
	kb_out_destroy(out);
	kb_path_destroy(path);
}

static void check_requests(struct kb_trace *trace, unsigned int choice)
{
	static const char *const ends[][2] = {
		{ "*", "*" }, { "begin", "end" },
		{ "syscall:*", "syscall:*" }, { "syscall:*(fd)", "syscall:*(fd)" },
	};
	const struct kb_requests_options options = {
		.size = sizeof(options), .slowest = 3,
		.from = ends[choice % 4][0], .until = ends[choice % 4][1],
	};
	const struct kb_requests *requests;
	struct kb_error err;
	struct kb_out *out;
	uint64_t sum = 0;

	if (kb_requests_create(&requests, trace, &options, &err) < 0)
		return;
	for (uint32_t i = 0; i < requests->nr_slowest; i++)
		check_links(requests->slowest[i]);
	for (uint32_t i = 0; i < requests->nr; i++)
		sum += requests->rows[i].stats.sum_ns;
	must(sum == requests->durations.sum_ns);
	must(!kb_out_memory(&out) && !kb_requests_text(requests, trace, NULL, out, &err));
	check_text(out);
	kb_out_destroy(out);
	kb_requests_destroy(requests);
}

static void check_ended(struct kb_trace *trace, enum kb_what what)
{
	const struct kb_ended_options options = { .size = sizeof(options), .what = what };
	const struct kb_ended *ended;
	struct kb_error err;
	struct kb_out *out;
	uint64_t count = 0, sum = 0;

	if (kb_ended_create(&ended, trace, &options, &err) < 0)
		return;
	for (uint32_t i = 0; i < ended->nr; i++) {
		count += ended->rows[i].count;
		sum += ended->rows[i].stats.sum_ns;
	}
	must(count == ended->count && sum == ended->sum_ns);
	must(!kb_out_memory(&out) && !kb_ended_text(ended, trace, NULL, out, &err));
	check_text(out);
	kb_out_destroy(out);
	kb_ended_destroy(ended);
}

static void check_classes(struct kb_trace *trace, unsigned int choice)
{
	const struct kb_filter filter = {
		.size = sizeof(filter), .has_time = choice & 1, .until = 1000000,
	};
	const struct kb_classes_options options = {
		.size = sizeof(options), .filter = &filter, .by_name = choice & 2,
	};
	const struct kb_classes *classes;
	struct kb_error err;
	struct kb_out *out;

	if (kb_classes_create(&classes, trace, &options, &err) < 0)
		return;
	for (uint32_t i = 0; i < classes->nr_tasks; i++) {
		const struct kb_classes_task *task = &classes->tasks[i];
		uint64_t sum = 0;

		for (uint32_t row = 0; row < task->nr; row++)
			sum += task->rows[row].ns;
		must(sum == sum_of(task->ns, KB_CLASSES) && (filter.has_time || sum == task->lived_ns));
	}
	for (uint32_t i = 0; i < classes->nr_cpus; i++)
		must(filter.has_time || sum_of(classes->cpus[i].ns, KB_CLASSES) == classes->duration_ns);
	must(!kb_out_memory(&out) && !kb_classes_text(classes, trace, NULL, out, &err));
	check_text(out);
	kb_out_destroy(out);
	kb_classes_destroy(classes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* no image of this machine is read, whatever the capture calls for */
	const struct kb_symbol_options nothing = {
		.size = sizeof(nothing), .symfs = "/nonexistent",
	};
	const struct kb_trace_options how = { .size = sizeof(how), .symbols = &nothing };
	struct kb_trace *trace;
	struct kb_error err;

	if (!size || kb_trace_open_memory(&trace, data, size, &how, &err))
		return 0;
	check_latency(trace, data[size - 1]);
	check_path(trace, data[size - 1]);
	check_requests(trace, data[size - 1]);
	check_classes(trace, data[size - 1]);
	check_ended(trace, KB_WHAT_SYSCALL + data[size - 1] % 3);
	kb_trace_close(trace);
	return 0;
}
