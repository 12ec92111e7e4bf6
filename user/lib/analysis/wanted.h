/* SPDX-License-Identifier: MIT */
/* What a filter chooses, by the rules of kbarman/filter.h. */
#ifndef KB_LIB_ANALYSIS_WANTED_H
#define KB_LIB_ANALYSIS_WANTED_H

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

/* The moment @ns behind the beginning of @trace. */
static inline int64_t kb_wanted_behind(const struct kb_trace *trace, uint64_t ns)
{
	int64_t sum;

	if (ns > INT64_MAX || __builtin_add_overflow(kb_trace_first(trace), (int64_t)ns, &sum))
		return INT64_MAX;
	return sum;
}

#define KB_DAY_NS	(INT64_C(86400) * 1000000000)

/* The time of day @ns on the day on which it is nearest to the beginning of @trace. */
static inline int64_t kb_wanted_of_day(const struct kb_trace *trace, int64_t ns)
{
	int64_t behind, half;

	/* times of a hostile capture may be anything */
	if (__builtin_sub_overflow(ns, kb_trace_first(trace), &behind) || behind > INT64_MAX / 2 ||
	    behind < INT64_MIN / 2)
		return ns;
	half = behind < 0 ? -KB_DAY_NS / 2 : KB_DAY_NS / 2;
	return (int64_t)((uint64_t)ns - (uint64_t)((behind + half) / KB_DAY_NS * KB_DAY_NS));
}

/* An end of the time that is wanted, which is @moment by a clock that is not the capture's. */
static inline int64_t kb_wanted_end(const struct kb_wanted *wanted, enum kb_filter_clock clock,
				    uint64_t ns, int64_t moment)
{
	return clock == KB_FILTER_CAPTURE ? kb_wanted_behind(wanted->trace, ns) :
	       clock == KB_FILTER_UNIX    ? moment :
					    kb_wanted_of_day(wanted->trace, moment);
}

static inline uint64_t kb_wanted_distance(int64_t a, int64_t b)
{
	return a < b ? (uint64_t)b - (uint64_t)a : (uint64_t)a - (uint64_t)b;
}

/*
 * The time that is wanted, as kb_barman_ns(), if the filter has one. Times of day may be nearest to the
 * beginning on two days: then that of the nearer one counts, because the time begins before it ends.
 */
static inline void kb_wanted_ends(const struct kb_wanted *wanted, int64_t *from, int64_t *until)
{
	const struct kb_filter *filter = &wanted->filter;
	int64_t first = kb_trace_first(wanted->trace);

	*from = kb_wanted_end(wanted, filter->from_clock, filter->from, wanted->from);
	*until = kb_wanted_end(wanted, filter->until_clock, filter->until, wanted->until);
	if (*from <= *until || filter->from_clock != KB_FILTER_OF_DAY ||
	    filter->until_clock != KB_FILTER_OF_DAY)
		return;
	if (kb_wanted_distance(*from, first) < kb_wanted_distance(*until, first))
		*until = (int64_t)((uint64_t)*until + KB_DAY_NS);
	else
		*from = (int64_t)((uint64_t)*from - KB_DAY_NS);
}

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
	return !wanted->filter.has_time ||
	       (ns >= kb_wanted_from(wanted) && ns <= kb_wanted_until(wanted));
}

/* Whether @ns is behind the time that is wanted. */
static inline bool kb_wanted_is_behind(const struct kb_wanted *wanted, int64_t ns)
{
	return wanted->filter.has_time && ns > kb_wanted_until(wanted);
}

/* The moment nearest to @ns in the time that is wanted. */
static inline int64_t kb_wanted_nearest(const struct kb_wanted *wanted, int64_t ns)
{
	if (!wanted->filter.has_time)
		return ns;
	if (ns > kb_wanted_until(wanted))
		ns = kb_wanted_until(wanted);
	return ns < kb_wanted_from(wanted) ? kb_wanted_from(wanted) : ns;
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
