/* SPDX-License-Identifier: MIT */
/* What a filter chooses, by the rules of kbarman/filter.h. */
#ifndef KB_LIB_ANALYSIS_WANTED_H
#define KB_LIB_ANALYSIS_WANTED_H

#include <string.h>

#include <kbarman/filter.h>
#include <kbarman/report.h>

struct kb_wanted {
	struct kb_filter filter;
	struct kb_trace *trace;
	const struct kb_tasks *tasks;
};

/* Returns 0 or -ENOMEM; -EINVAL: @filter has a size that can't be right. NULL wants everything. */
int kb_wanted_init(struct kb_wanted *wanted, struct kb_trace *trace, const struct kb_filter *filter,
		   struct kb_error *err);

/* Whether a record is wanted; @walk is that of kb_trace_next(). */
bool kb_wanted_record(const struct kb_wanted *wanted, const struct kb_walk *walk);

/* Whether a wait is: by its task, when it began and where. @context is the struct kb_wanted. */
bool kb_wanted_wait(void *context, const struct kb_wait *wait);

/* Whether @cpus, of a filter, have @core. */
static inline bool kb_cpus_have(const uint64_t *cpus, unsigned int nr_words, uint32_t core)
{
	return !cpus || (core / 64 < nr_words && cpus[core / 64] >> core % 64 & 1);
}

static inline bool kb_wanted_cpu(const struct kb_wanted *wanted, uint32_t core)
{
	return kb_cpus_have(wanted->filter.cpus, wanted->filter.nr_cpu_words, core);
}

static inline bool kb_wanted_time(const struct kb_wanted *wanted, int64_t ns)
{
	uint64_t since;

	if (!wanted->filter.has_time)
		return true;
	since = (uint64_t)ns - (uint64_t)kb_trace_first(wanted->trace);
	return since >= wanted->filter.from && since <= wanted->filter.until;
}

/* The moment @ns behind the beginning of @trace. */
static inline int64_t kb_wanted_behind(const struct kb_trace *trace, uint64_t ns)
{
	uint64_t most = (uint64_t)INT64_MAX - (uint64_t)kb_trace_first(trace);

	return (int64_t)((uint64_t)kb_trace_first(trace) + (ns < most ? ns : most));
}

/* The moment nearest to @ns in the time that is wanted. */
static inline int64_t kb_wanted_nearest(const struct kb_wanted *wanted, int64_t ns)
{
	int64_t from, until;

	if (!wanted->filter.has_time)
		return ns;
	from = kb_wanted_behind(wanted->trace, wanted->filter.from);
	until = kb_wanted_behind(wanted->trace, wanted->filter.until);
	return ns < from ? from : ns > until ? until : ns;
}

/* How much of the time from @start until @end is wanted, ns. Hostile ones differ by up to 2^64. */
static inline uint64_t kb_wanted_span(const struct kb_wanted *wanted, int64_t start, int64_t end)
{
	return (uint64_t)kb_wanted_nearest(wanted, end) - (uint64_t)kb_wanted_nearest(wanted, start);
}

/* Are only some tasks wanted? */
static inline bool kb_wanted_has_task(const struct kb_wanted *wanted)
{
	return wanted->filter.task || wanted->filter.has_tid;
}

static inline bool kb_wanted_task(const struct kb_wanted *wanted, uint32_t task_id, uint64_t ticks)
{
	const struct kb_filter *filter = &wanted->filter;
	char buffer[KB_TASK_NAME_BUFFER];
	struct kb_task_hit hit;

	if (filter->has_tid && task_id != filter->tid) {
		kb_tasks_find(wanted->tasks, task_id, ticks, &hit);
		if (hit.tgid != filter->tid)
			return false;
	}
	return !filter->task ||
	       strcmp(filter->task, kb_tasks_name(wanted->tasks, task_id, ticks, buffer)) == 0;
}

#endif
