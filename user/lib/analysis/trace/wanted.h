/* SPDX-License-Identifier: MIT */
/* What a filter chooses, by the rules of kbarman/filter.h. */
#ifndef KB_LIB_ANALYSIS_TRACE_WANTED_H
#define KB_LIB_ANALYSIS_TRACE_WANTED_H

#include <string.h>

#include <kbarman/filter.h>
#include <kbarman/report.h>

struct kb_wanted {
	struct kb_filter filter;
	int64_t from, until;		/* times of other clocks than the capture's */
	struct kb_trace *trace;
	const struct kb_tasks *tasks;
};

/*
 * Returns 0 or -ENOMEM; -EINVAL: @filter has a size that can't be right; -ENODATA: the capture does
 * not say when it was recorded, and @filter asks for it. NULL wants everything.
 */
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

/* The time that is wanted, as kb_barman_ns(), if the filter has one. */
void kb_wanted_ends(const struct kb_wanted *wanted, int64_t *from, int64_t *until);

static inline int64_t kb_wanted_from(const struct kb_wanted *wanted)
{
	int64_t from, until;

	kb_wanted_ends(wanted, &from, &until);
	return from;
}

static inline int64_t kb_wanted_until(const struct kb_wanted *wanted)
{
	int64_t from, until;

	kb_wanted_ends(wanted, &from, &until);
	return until;
}

static inline bool kb_wanted_time(const struct kb_wanted *wanted, int64_t ns)
{
	int64_t from, until;

	if (!wanted->filter.has_time)
		return true;
	kb_wanted_ends(wanted, &from, &until);
	return ns >= from && ns <= until;
}

/* Whether @ns is behind the time that is wanted. */
static inline bool kb_wanted_is_behind(const struct kb_wanted *wanted, int64_t ns)
{
	return wanted->filter.has_time && ns > kb_wanted_until(wanted);
}

/* The moment nearest to @ns in the time that is wanted. */
static inline int64_t kb_wanted_nearest(const struct kb_wanted *wanted, int64_t ns)
{
	int64_t from, until;

	if (!wanted->filter.has_time)
		return ns;
	kb_wanted_ends(wanted, &from, &until);
	if (ns > until)
		ns = until;
	return ns < from ? from : ns;
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
