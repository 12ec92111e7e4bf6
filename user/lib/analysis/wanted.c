// SPDX-License-Identifier: MIT
#include <errno.h>

#include "analysis/trace_inside.h"
#include "analysis/wanted.h"
#include "base/options.h"

int kb_wanted_init(struct kb_wanted *wanted, struct kb_trace *trace, const struct kb_filter *filter,
		   struct kb_error *err)
{
	int ret = KB_OPTIONS(&wanted->filter, filter, err);

	if (ret)
		return ret;
	wanted->trace = trace;
	wanted->tasks = kb_trace_tasks(trace, err);
	return wanted->tasks ? 0 : -ENOMEM;
}

/* Whether a record moves a task that need not be the one that runs. */
static bool moves_task(const struct kb_event *event)
{
	return event->custom_counter.what == KB_WHAT_WAKING ||
	       event->custom_counter.what == KB_WHAT_WAKING_NEW ||
	       event->custom_counter.what == KB_WHAT_MIGRATE;
}

static bool is_of_task(const struct kb_wanted *wanted, const struct kb_walk *walk)
{
	const struct kb_event *event = &walk->event;
	uint64_t ticks = event->timestamp;

	switch (event->type) {
	case KB_EVENT_TASK_SWITCH:
		return kb_wanted_task(wanted, event->task_id, ticks) ||
		       (walk->known && kb_wanted_task(wanted, walk->running, ticks));
	case KB_EVENT_HALT:
		return walk->known && kb_wanted_task(wanted, walk->running, ticks);
	case KB_EVENT_CUSTOM_COUNTER:
		return kb_wanted_task(wanted, event->task_id, ticks) ||
		       (moves_task(event) &&
			kb_wanted_task(wanted, event->custom_counter.id, ticks));
	case KB_EVENT_SAMPLE:
	case KB_EVENT_ANNOTATION:
		return kb_wanted_task(wanted, event->task_id, ticks);
	default:
		return false;
	}
}

bool kb_wanted_record(const struct kb_wanted *wanted, const struct kb_walk *walk)
{
	return kb_wanted_cpu(wanted, walk->event.core) && kb_wanted_time(wanted, walk->ns) &&
	       (!kb_wanted_has_task(wanted) || is_of_task(wanted, walk));
}

bool kb_wanted_wait(void *context, const struct kb_wait *wait)
{
	const struct kb_wanted *wanted = context;

	return kb_wanted_cpu(wanted, wait->core) &&
	       kb_wanted_task(wanted, wait->task_id, wait->ticks) &&
	       kb_wanted_time(wanted, kb_barman_ns(kb_trace_barman(wanted->trace), wait->ticks));
}

bool kb_trace_wants(struct kb_trace *trace, const struct kb_filter *filter)
{
	struct kb_wanted wanted;

	return !filter || (!kb_wanted_init(&wanted, trace, filter, NULL) &&
			   kb_wanted_record(&wanted, &trace->walk));
}
