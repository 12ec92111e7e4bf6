// SPDX-License-Identifier: MIT
/* The mark of a wait is the node of the switch that begins it. */
#include "export/waits.h"

static void take_wait(void *context, const struct kb_wait *wait)
{
	struct kb_stack_waits *waits = context;

	if (!wait->mark || !kb_is_shown_wait(waits->trace, wait))
		return;
	waits->nr++;
	waits->take(waits->context, wait);
}

int kb_stack_waits_init(struct kb_stack_waits *waits, const struct kb_trace *trace,
			struct kb_stack_table *stacks, void *context, struct kb_error *err)
{
	int ret;

	waits->stacks = stacks;
	waits->trace = trace;
	waits->context = context;
	ret = kb_sched_create(&waits->sched, kb_trace_header(trace)->max_cores, err);
	if (!ret)
		kb_sched_on_wait(waits->sched, take_wait, waits);
	return ret;
}

void kb_stack_waits_release(struct kb_stack_waits *waits)
{
	kb_sched_destroy(waits->sched);
	waits->sched = NULL;
}

/* The chain belongs to the previous task. */
static void mark(struct kb_stack_waits *waits, const struct kb_event *event, uint32_t task_id)
{
	struct kb_event gone = *event;
	int64_t node;

	gone.task_id = task_id;
	node = kb_stack_table_add(waits->stacks, &gone, waits->trace->symbolizer);
	waits->no_memory |= node < 0;
	if (node > 0)
		kb_sched_mark(waits->sched, task_id, (uint32_t)node, event->timestamp);
}

void kb_stack_waits_feed(struct kb_stack_waits *waits, const struct kb_walk *walk)
{
	const struct kb_event *event = &walk->event;
	unsigned int i;

	/* Only waits with a chain are taken, and most captures have none. */
	waits->begun |= event->type == KB_EVENT_TASK_SWITCH && event->task_switch.nr_chain;
	if (!waits->begun)
		return;
	for (i = 0; i < walk->nr_slices; i++) {
		const struct kb_slice *slice = &walk->slices[i];

		waits->no_memory |= kb_sched_add(waits->sched, slice, event->timestamp) != 0;
		if (event->type == KB_EVENT_TASK_SWITCH && event->task_switch.nr_chain &&
		    slice->has_task && slice->task_id &&
		    (slice->how == KB_END_BLOCKED || slice->how == KB_END_PREEMPTED))
			mark(waits, event, slice->task_id);
	}
}

void kb_stack_waits_end(struct kb_stack_waits *waits, struct kb_trace *trace)
{
	struct kb_slice slice;

	/* A task that runs at the end has ended its wait. */
	while (kb_trace_end(trace, &slice))
		waits->no_memory |= kb_sched_add(waits->sched, &slice,
						 trace->walk.event.timestamp) != 0;
}
