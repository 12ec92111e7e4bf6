// SPDX-License-Identifier: MIT
/*
 * The samples of a capture in Speedscope's file format: a sampled profile for each task, with
 * stacks ordered by time. This order requires all samples in memory. Alternatively waits take
 * the place of samples; their weight is their duration.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/facts/capture_names.h"
#include "base/text/json.h"
#include "export/keep.h"
#include "export/list.h"
#include "export/run.h"

struct profile {
	size_t first, nr;	/* in samples */
	uint64_t total;		/* weight */
};

struct speedscope {
	KB_RUN;
	struct kb_keep samples;
	struct profile *profiles;
	size_t nr_profiles;
	bool count;		/* samples weigh 1 each */
	bool offcpu;		/* waits instead of samples */
	uint64_t mean;		/* weight of samples that have none */
};

#define SINK struct speedscope
#include "export/sink.h"

static void keep(struct speedscope *x, const struct kb_kept *sample)
{
	x->no_memory |= kb_keep_add(&x->samples, sample) != 0;
}

static void take_wait(void *context, const struct kb_wait *wait)
{
	struct speedscope *x = context;
	int64_t task = kb_task_table_find(&x->tasks, wait->task_id, wait->ticks);

	x->no_memory |= task < 0;
	if (task >= 0)
		keep(x, &(struct kb_kept) {
			.ns = wait->since, .weight = wait->ns, .task = (uint32_t)task,
			.node = wait->mark,
		});
}

static void add_sample(struct speedscope *x, const struct kb_walk *walk, uint32_t known, uint32_t node)
{
	const struct kb_event *event = &walk->event;
	int64_t task = kb_task_table_find(&x->tasks, event->task_id, event->timestamp);
	struct kb_kept sample = {
		.ns = walk->ns,
		.weight = event->sample.nr_counters ? event->sample.counters[0] :
						      KB_COUNTER_INVALID,
		.task = (uint32_t)task,
		.node = node,
	};

	(void)known;
	x->no_memory |= task < 0;
	if (!x->no_memory)
		keep(x, &sample);
}

static uint64_t weight_of(const struct speedscope *x, const struct kb_kept *sample)
{
	if (x->count)
		return 1;
	return sample->weight == KB_COUNTER_INVALID ? x->mean : sample->weight;
}

/* As in a flame graph, a sample without a counter's value has the mean of the others. */
static void settle(struct speedscope *x)
{
	uint64_t weight = 0, weighed = 0;
	size_t i;

	x->count |= !x->offcpu && !kb_names_one_weight(x->trace->names);
	for (i = 0; i < x->samples.nr && !x->count; i++) {
		if (x->samples.rows[i].weight == KB_COUNTER_INVALID)
			continue;
		weight += x->samples.rows[i].weight;
		weighed++;
	}
	x->count |= !weight;
	x->mean = weighed ? weight / weighed : 0;
}

static int heaviest_first(const void *left, const void *right)
{
	const struct profile *a = left, *b = right;

	if (a->total != b->total)
		return a->total > b->total ? -1 : 1;
	return a->first < b->first ? -1 : 1;
}

static int divide(struct speedscope *x)
{
	size_t at, i, nr;

	kb_keep_sort(&x->samples);
	x->profiles = reallocarray(NULL, (size_t)x->tasks.rows.nr + 1, sizeof(*x->profiles));
	if (!x->profiles)
		return -ENOMEM;
	for (at = 0; at < x->samples.nr; at += nr) {
		struct profile *profile = &x->profiles[x->nr_profiles++];

		nr = kb_keep_run(&x->samples, at);
		*profile = (struct profile) { .first = at, .nr = nr };
		for (i = at; i < at + nr; i++)
			profile->total += weight_of(x, &x->samples.rows[i]);
	}
	qsort(x->profiles, x->nr_profiles, sizeof(*x->profiles), heaviest_first);
	return 0;
}

static void write_frames(struct speedscope *x)
{
	char label[KB_STACK_LABEL];
	uint32_t i;

	kb_json_object(&x->json, "shared");
	kb_json_array(&x->json, "frames");
	for (i = 0; i < x->stacks.frames.nr; i++) {
		const struct kb_stack_frame *frame = kb_stack_frame(&x->stacks, i);

		kb_json_object(&x->json, NULL);
		kb_json_text(&x->json, "name", label, kb_stack_label(&x->stacks, i, label));
		kb_json_string(&x->json, "file", kb_stack_image(&x->stacks, frame->image)->path);
		kb_json_object_end(&x->json);
	}
	kb_json_array_end(&x->json);
	kb_json_object_end(&x->json);
}

/* Write a stack, outermost frame first. Nodes lead from the innermost to the outermost. */
static void write_stack(struct speedscope *x, uint32_t node, uint32_t *path)
{
	uint32_t depth = kb_stack_node(&x->stacks, node)->depth, i;

	for (i = depth; i--; node = kb_stack_node(&x->stacks, node)->parent)
		path[i] = kb_stack_node(&x->stacks, node)->frame;
	kb_json_array(&x->json, NULL);
	for (i = 0; i < depth; i++)
		kb_json_u64(&x->json, NULL, path[i]);
	kb_json_array_end(&x->json);
}

static void write_profile(struct speedscope *x, const struct profile *profile, const char *unit,
			  uint32_t *path)
{
	const struct kb_kept *samples = profile->nr ? x->samples.rows + profile->first : NULL;
	char name[KB_TASK_LABEL + 16] = "no samples";
	size_t length = strlen(name), i;

	if (profile->nr) {
		length = kb_task_label(&x->tasks, samples->task, name);
		length += (size_t)sprintf(name + length, " (%llu)", (unsigned long long)
					  kb_task_id(&x->tasks, samples->task)->key[0]);
	}
	kb_json_object(&x->json, NULL);
	kb_json_string(&x->json, "type", "sampled");
	kb_json_text(&x->json, "name", name, length);
	kb_json_string(&x->json, "unit", unit);
	kb_json_u64(&x->json, "startValue", 0);
	kb_json_u64(&x->json, "endValue", profile->total);
	kb_json_array(&x->json, "samples");
	for (i = 0; i < profile->nr; i++)
		write_stack(x, samples[i].node, path);
	kb_json_array_end(&x->json);
	kb_json_array(&x->json, "weights");
	for (i = 0; i < profile->nr; i++)
		kb_json_u64(&x->json, NULL, weight_of(x, &samples[i]));
	kb_json_array_end(&x->json);
	kb_json_object_end(&x->json);
}

/* The unit of the weights. Clocks count time. */
static const char *unit_of(const struct speedscope *x)
{
	struct kb_text name;

	if (x->offcpu)
		return "nanoseconds";
	if (x->count || !kb_names_nr_counters(x->trace->names))
		return "none";
	name = kb_names_counter(x->trace->names, 0);
	if (name.length > 6 && memcmp(name.data + name.length - 6, "-clock", 6) == 0)
		return "nanoseconds";
	return "none";
}

static int write_all(struct speedscope *x)
{
	const char *command = kb_barman_fact(x->trace->barman, "command");
	const char *target = kb_trace_header(x->trace)->target_name;
	static const struct profile nothing;
	uint32_t deepest = 1, *path, i;
	size_t p;

	for (i = 0; i < x->stacks.nodes.nr; i++)
		if (kb_stack_node(&x->stacks, i)->depth > deepest)
			deepest = kb_stack_node(&x->stacks, i)->depth;
	path = reallocarray(NULL, deepest, sizeof(*path));
	if (!path)
		return -ENOMEM;
	kb_json_object(&x->json, NULL);
	kb_json_string(&x->json, "$schema", "https://www.speedscope.app/file-format-schema.json");
	kb_json_string(&x->json, "exporter", "kbarman");
	kb_json_string(&x->json, "name", command ? command : target ? target : "");
	kb_json_u64(&x->json, "activeProfileIndex", 0);
	write_frames(x);
	kb_json_array(&x->json, "profiles");
	for (p = 0; p < x->nr_profiles; p++)
		write_profile(x, &x->profiles[p], unit_of(x), path);
	if (!x->nr_profiles)	/* Speedscope refuses a file without profiles */
		write_profile(x, &nothing, "none", path);
	kb_json_array_end(&x->json);
	kb_json_object_end(&x->json);
	kb_out_bytes(x->out, "\n", 1);
	free(path);
	return 0;
}

static int begin(struct speedscope *x)
{
	x->count = x->options->format && strcmp(x->options->format, "samples") == 0;
	x->offcpu = x->waits.take;
	return 0;
}

static int end(struct speedscope *x)
{
	settle(x);
	if (!x->no_memory)
		x->no_memory = divide(x) || write_all(x);
	if (!x->samples.nr)
		kb_export_say(x->options, x->offcpu ? "the capture has no waits with a call chain: "
			      "record with -g --off-cpu" :
			      "the capture has no samples with an address");
	return 0;
}

static void release(struct speedscope *x)
{
	free(x->profiles);
	kb_keep_release(&x->samples);
}

static const struct sink of_samples = {
	.uses = KB_USES_STACKS | KB_USES_CALLS_ALONE,
	.begin = begin,
	.end = end,
	.release = release,
	.call = add_sample,
};

static const struct sink of_waits = {
	.uses = KB_USES_STACKS | KB_USES_NO_RECORDS,
	.begin = begin,
	.end = end,
	.release = release,
	.waited = take_wait,
};

static int run(struct kb_trace *trace, const struct kb_export_options *options,
	       struct kb_out *out, struct kb_error *err)
{
	if (options->format && strcmp(options->format, "offcpu") == 0)
		return sink_start(&of_waits, trace, options, out, err);
	return sink_start(&of_samples, trace, options, out, err);
}

static const char *const formats[] = {
	"weight", ".speedscope.json", "samples", ".speedscope.json",
	"offcpu", ".speedscope.json", NULL,
};

const struct kb_export kb_export_speedscope = {
	.name = "speedscope",
	.extension = ".speedscope.json",
	.description = "Speedscope: a sampled profile for each task (weight, samples, offcpu)",
	.formats = formats,
	.run = run,
};
