// SPDX-License-Identifier: MIT
/* One pass over the capture. Only the different chains stay in memory. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "export/run.h"
#include "export/weighed_calls.h"

static bool is_format(const struct kb_export_options *options, const char *format)
{
	return options->format && strcmp(options->format, format) == 0;
}

/* The id of the counter that is the weight. UINT32_MAX: the one that samples. */
static int find_event(const struct kb_names *names, const struct kb_export_options *options,
		      uint32_t *id, struct kb_error *err)
{
	uint32_t i, nr = kb_names_nr_counters(names);
	char list[256] = "";
	size_t used = 0;

	*id = UINT32_MAX;
	if (!options->event)
		return 0;
	for (i = 0; i < nr; i++) {
		struct kb_text name = kb_names_counter(names, i);

		if (name.length == strlen(options->event) &&
		    memcmp(name.data, options->event, name.length) == 0) {
			*id = i;
			return 0;
		}
		if (used < sizeof(list))
			used += snprintf(list + used, sizeof(list) - used, "%s%.*s", i ? ", " : "",
					 (int)name.length, name.data);
	}
	return kb_error_set(err, -EINVAL, KB_NO_OFFSET, "the capture did not count '%s'; it has: %s",
			    options->event, nr ? list : "nothing");
}

/* The increase of counter @id in @event; 0 if it was not read. */
static uint64_t value_of(const struct kb_names *names, const struct kb_event *event, uint32_t id)
{
	uint32_t i, nr = kb_names_of_core(names, event->core);

	for (i = 0; i < nr && i < event->sample.nr_counters; i++)
		if (kb_names_counter_id(names, event->core, i) == id)
			return event->sample.counters[i] == KB_COUNTER_INVALID ?
				0 : event->sample.counters[i];
	return 0;
}

static int add_sample(struct kb_weighed_calls *stacks, const struct kb_trace *trace, uint32_t id)
{
	const struct kb_event *event = &trace->walk.event;
	int64_t node;

	stacks->samples++;
	if (id == UINT32_MAX)
		return kb_calltree_add(stacks->tree, event, trace->symbolizer);
	node = kb_calltree_find(stacks->tree, event, event->task_id, trace->symbolizer);
	if (node < 0)
		return node;
	kb_calltree_weigh(stacks->tree, node, value_of(trace->names, event, id));
	return 0;
}

static int out_of_memory(struct kb_error *err)
{
	return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
}

/* What is wanted of a trace may depend on the time and on the tasks that run. */
static bool next_event(struct kb_trace *trace, struct kb_error *err)
{
	return (trace->wanted ? trace_next(trace, err) : trace_next_event(trace, err)) > 0;
}

static int read_samples(struct kb_weighed_calls *stacks, struct kb_trace *trace,
			const struct kb_export_options *options, struct kb_error *err)
{
	bool count = is_format(options, "samples"), chains = false;
	const struct kb_event *event = &trace->walk.event;
	uint32_t id;
	int ret;

	ret = find_event(trace->names, options, &id, err);
	if (!ret && id == UINT32_MAX)
		count |= !kb_names_one_weight(trace->names);
	if (!ret)
		ret = kb_calltree_create(&stacks->tree, trace->tasks, err);
	if (ret)
		return ret;
	while (next_event(trace, err)) {
		if (event->type != KB_EVENT_SAMPLE || !event->sample.has_pc || !kb_is_shown(trace))
			continue;
		chains |= event->sample.nr_chain > 1;
		if (add_sample(stacks, trace, id))
			return out_of_memory(err);
		if (!stacks->unit.length && kb_names_of_core(trace->names, event->core))
			stacks->unit = kb_names_counter(trace->names,
							kb_names_counter_id(trace->names,
									    event->core, 0));
	}
	if (id != UINT32_MAX)
		stacks->unit = kb_names_counter(trace->names, id);
	if (count || !stacks->unit.length)
		stacks->unit = kb_text("samples");
	stacks->nodes = kb_calltree_finish(stacks->tree, count, &stacks->nr, &stacks->order);
	if (!stacks->nodes)
		return out_of_memory(err);
	if (!stacks->samples)
		kb_export_say(options, "the capture has no samples with an address");
	else if (!chains)
		kb_export_say(options, "the capture has no call chains, every stack has one frame: "
			      "record with -g");
	return 0;
}

static int add_event(struct kb_weighed_calls *stacks, const struct kb_walk *walk)
{
	const struct kb_event *event = &walk->event;
	unsigned int i;
	int ret = 0;

	for (i = 0; i < walk->nr_slices && !ret; i++) {
		ret = kb_sched_add(stacks->sched, &walk->slices[i], event->timestamp);
		if (!ret && event->type == KB_EVENT_TASK_SWITCH)
			ret = kb_offcpu_switch(stacks->offcpu, event, &walk->slices[i]);
	}
	return ret;
}

static int read_waits(struct kb_weighed_calls *stacks, struct kb_trace *trace,
		      const struct kb_export_options *options, struct kb_error *err)
{
	struct kb_slice slice;
	uint64_t last = 0;
	uint32_t i;
	int ret;

	if (options->event)
		return kb_error_set(err, -EINVAL, KB_NO_OFFSET, "waits are weighted by time: "
				    "offcpu takes no event");
	ret = kb_sched_create(&stacks->sched, kb_trace_header(trace)->max_cores, err);
	if (!ret)
		ret = kb_offcpu_create(&stacks->offcpu, trace->barman, trace->tasks, trace->symbolizer,
				       stacks->sched, err);
	if (ret)
		return ret;
	if (trace->wanted)
		kb_offcpu_filter(stacks->offcpu, kb_wanted_wait, trace->wanted);
	stacks->times = true;
	while (trace_next(trace, err) > 0) {
		last = trace->walk.event.timestamp;
		if (add_event(stacks, &trace->walk))
			return out_of_memory(err);
	}
	while (kb_trace_end(trace, &slice))
		if (kb_sched_add(stacks->sched, &slice, last))
			return out_of_memory(err);
	stacks->nodes = kb_calltree_finish(kb_offcpu_tree(stacks->offcpu), false, &stacks->nr,
					   &stacks->order);
	if (!stacks->nodes)
		return out_of_memory(err);
	for (i = 0; i < stacks->nr; i++)
		stacks->samples += stacks->nodes[i].samples;
	if (!stacks->samples)
		kb_export_say(options, "the capture has no waits: it has no task switches, or no "
				       "task ran again after it was switched away");
	else if (!kb_offcpu_has_chains(stacks->offcpu))
		kb_export_say(options, "the capture's task switches have no call chains: record "
			      "with -g --off-cpu");
	return 0;
}

int kb_weighed_calls_read(struct kb_weighed_calls *stacks, struct kb_trace *trace,
			  const struct kb_export_options *options, struct kb_error *err)
{
	int ret;

	*stacks = (struct kb_weighed_calls) { 0 };
	ret = kb_export_begin(trace, err);
	if (ret)
		return ret;
	return is_format(options, "offcpu") ? read_waits(stacks, trace, options, err) :
					      read_samples(stacks, trace, options, err);
}

void kb_weighed_calls_release(struct kb_weighed_calls *stacks)
{
	kb_calltree_destroy(stacks->tree);
	kb_offcpu_destroy(stacks->offcpu);
	kb_sched_destroy(stacks->sched);
}
