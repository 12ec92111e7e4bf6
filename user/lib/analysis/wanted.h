/* SPDX-License-Identifier: MIT */
/* What the options of a latency report choose. */
#ifndef KB_LIB_ANALYSIS_WANTED_H
#define KB_LIB_ANALYSIS_WANTED_H

#include <string.h>

#include <kbarman/latency.h>

struct kb_wanted {
	struct kb_latency_options how;
	struct kb_trace *trace;
	const struct kb_tasks *tasks;
};

static inline bool kb_wanted_cpu(const struct kb_wanted *wanted, uint32_t core)
{
	const struct kb_latency_options *how = &wanted->how;

	return !how->cpus || (core / 64 < how->nr_cpu_words &&
			      how->cpus[core / 64] >> core % 64 & 1);
}

static inline bool kb_wanted_time(const struct kb_wanted *wanted, int64_t ns)
{
	uint64_t since;

	if (!wanted->how.has_time)
		return true;
	since = (uint64_t)ns - (uint64_t)kb_trace_first(wanted->trace);
	return since >= wanted->how.from && since <= wanted->how.until;
}

static inline bool kb_wanted_task(const struct kb_wanted *wanted, uint32_t task_id, uint64_t ticks)
{
	const struct kb_latency_options *how = &wanted->how;
	char buffer[KB_TASK_NAME_BUFFER];
	struct kb_task_hit hit;

	if (how->has_tid && task_id != how->tid) {
		kb_tasks_find(wanted->tasks, task_id, ticks, &hit);
		if (hit.tgid != how->tid)
			return false;
	}
	return !how->task ||
	       strcmp(how->task, kb_tasks_name(wanted->tasks, task_id, ticks, buffer)) == 0;
}

#endif
