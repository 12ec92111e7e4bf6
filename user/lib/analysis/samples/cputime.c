// SPDX-License-Identifier: MIT
/* CPU time is the time of the slices that ended and of the current slice up to now. */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/samples/cputime.h"
#include "base/array.h"

struct task_time {
	uint64_t key;		/* task id */
	uint64_t ran;		/* ns, up to the end of its last slice */
	uint64_t sampled;	/* ns of `ran` that were assigned to samples */
};

bool kb_cputime_is_clock(struct kb_text name)
{
	static const char *const clocks[] = { "cpu-clock", "task-clock" };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(clocks); i++)
		if (name.length == strlen(clocks[i]) &&
		    memcmp(name.data, clocks[i], name.length) == 0)
			return true;
	return false;
}

int kb_cputime_init(struct kb_cputime *times, const struct kb_trace *trace)
{
	uint32_t max_cores = kb_trace_header(trace)->max_cores;

	times->timeline = trace->timeline;
	times->names = trace->names;
	times->clock = kb_names_nr_counters(trace->names) && kb_names_one_weight(trace->names) &&
		       kb_cputime_is_clock(kb_names_counter(trace->names, 0));
	times->max_cores = max_cores;
	kb_table_init(&times->tasks, sizeof(struct task_time), 1);
	times->recent = (struct kb_table_recent) { 0 };
	times->since = calloc((size_t)max_cores + 1, sizeof(*times->since));
	times->seen = calloc((size_t)max_cores + 1, sizeof(*times->seen));
	return times->since && times->seen ? 0 : -ENOMEM;
}

void kb_cputime_release(struct kb_cputime *times)
{
	free(times->seen);
	free(times->since);
	kb_table_release(&times->tasks);
}

static struct task_time *time_of(struct kb_cputime *times, uint32_t task_id)
{
	return kb_table_get_recent(&times->tasks, &times->recent, task_id);
}

int kb_cputime_feed(struct kb_cputime *times, const struct kb_walk *walk)
{
	const struct kb_slice *slice = walk->slices, *end = slice + walk->nr_slices;
	uint32_t core = walk->event.core;
	struct task_time *time;

	for (; slice < end; slice++) {
		times->since[slice->core] = slice->end;
		if (slice->kind != KB_SLICE_RUN)
			continue;
		time = time_of(times, slice->task_id);
		if (!time)
			return -ENOMEM;
		time->ran += (uint64_t)slice->end - (uint64_t)slice->start;
	}
	if (core < times->max_cores && !times->seen[core]) {
		times->seen[core] = true;
		times->since[core] = walk->ns;
	}
	return 0;
}

int kb_cputime_sample(struct kb_cputime *times, const struct kb_event *event, int64_t ns,
		      uint64_t *since)
{
	struct task_time *time;
	uint32_t running;
	uint64_t ran;

	if (times->clock) {
		bool counted = event->sample.nr_counters &&
			       kb_names_of_core(times->names, event->core) &&
			       event->sample.counters[0] != KB_COUNTER_INVALID;

		*since = counted ? event->sample.counters[0] : 0;
		return 0;
	}
	time = time_of(times, event->task_id);
	if (!time)
		return -ENOMEM;
	ran = time->ran;
	if (kb_timeline_running(times->timeline, event->core, &running) &&
	    running == event->task_id && ns > times->since[event->core])
		ran += (uint64_t)ns - (uint64_t)times->since[event->core];
	*since = ran > time->sampled ? ran - time->sampled : 0;
	time->sampled += *since;
	return 0;
}
