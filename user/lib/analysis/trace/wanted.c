// SPDX-License-Identifier: MIT
#include <errno.h>
#include <time.h>

#include "analysis/trace/inside.h"
#include "analysis/trace/wanted.h"
#include "base/clock.h"
#include "base/options.h"

#define DAY_NS		(86400 * KB_NS_PER_S)
#define NS_MOST		(INT64_MAX / 4)		/* more than 70 years: sums of these do not overflow */

/*
 * The moment of another clock, by that of the capture. A time of a day is that of the day on which the
 * capture ended; moment_of_day() finds the right one. @base: when the capture's was 0, since 1970.
 */
static int64_t moment_of(const struct kb_wanted *wanted, enum kb_filter_clock clock, uint64_t ns,
			 int64_t base)
{
	int64_t since = (int64_t)(ns < NS_MOST ? ns : NS_MOST), last;
	struct tm tm = { 0 };
	time_t seconds;

	if (clock == KB_FILTER_UNIX)
		return since - base;
	last = kb_barman_ns(kb_trace_barman(wanted->trace),
			    kb_trace_header(wanted->trace)->last_timestamp);
	last = last > 0 && last < NS_MOST ? last : 0;
	seconds = (time_t)((base + last) / KB_NS_PER_S);
	localtime_r(&seconds, &tm);
	return since + last - (tm.tm_hour * 60 + tm.tm_min) * 60 * KB_NS_PER_S - tm.tm_sec * KB_NS_PER_S -
	       (base + last) % KB_NS_PER_S;
}

static int take_clocks(struct kb_wanted *wanted, struct kb_error *err)
{
	const struct kb_filter *filter = &wanted->filter;
	uint64_t base = kb_trace_header(wanted->trace)->unix_base_ns;

	if (!filter->has_time || (!filter->from_clock && !filter->until_clock))
		return 0;
	if (!base || base > NS_MOST)
		return kb_error_set(err, -ENODATA, KB_NO_OFFSET, "the capture does not say when it was "
				    "recorded: give times in seconds since its beginning");
	wanted->from = moment_of(wanted, filter->from_clock, filter->from, (int64_t)base);
	wanted->until = moment_of(wanted, filter->until_clock, filter->until, (int64_t)base);
	return 0;
}

int kb_wanted_init(struct kb_wanted *wanted, struct kb_trace *trace, const struct kb_filter *filter,
		   struct kb_error *err)
{
	int ret = KB_OPTIONS(&wanted->filter, filter, err);

	if (ret)
		return ret;
	wanted->trace = trace;
	wanted->tasks = kb_trace_tasks(trace, err);
	return wanted->tasks ? take_clocks(wanted, err) : -ENOMEM;
}

/* The moment @ns behind the beginning of @trace. */
static int64_t moment_behind(const struct kb_trace *trace, uint64_t ns)
{
	int64_t sum;

	if (ns > INT64_MAX || __builtin_add_overflow(kb_trace_first(trace), (int64_t)ns, &sum))
		return INT64_MAX;
	return sum;
}

/* The time of day @ns on the day on which it is nearest to the beginning of @trace. */
static int64_t moment_of_day(const struct kb_trace *trace, int64_t ns)
{
	int64_t behind, half;

	/* times of a hostile capture may be anything */
	if (__builtin_sub_overflow(ns, kb_trace_first(trace), &behind) || behind > INT64_MAX / 2 ||
	    behind < INT64_MIN / 2)
		return ns;
	half = behind < 0 ? -DAY_NS / 2 : DAY_NS / 2;
	return (int64_t)((uint64_t)ns - (uint64_t)((behind + half) / DAY_NS * DAY_NS));
}

/* An end of the time that is wanted, which is @moment by a clock that is not the capture's. */
static int64_t end_of(const struct kb_wanted *wanted, enum kb_filter_clock clock, uint64_t ns,
		      int64_t moment)
{
	return clock == KB_FILTER_CAPTURE ? moment_behind(wanted->trace, ns) :
	       clock == KB_FILTER_UNIX    ? moment : moment_of_day(wanted->trace, moment);
}

static uint64_t distance_of(int64_t a, int64_t b)
{
	return a < b ? (uint64_t)b - (uint64_t)a : (uint64_t)a - (uint64_t)b;
}

/*
 * Times of day may be nearest to the beginning on two days: then that of the nearer one counts, because
 * the time begins before it ends.
 */
void kb_wanted_ends(const struct kb_wanted *wanted, int64_t *from, int64_t *until)
{
	const struct kb_filter *filter = &wanted->filter;
	int64_t first = kb_trace_first(wanted->trace);

	*from = end_of(wanted, filter->from_clock, filter->from, wanted->from);
	*until = end_of(wanted, filter->until_clock, filter->until, wanted->until);
	if (*from <= *until || filter->from_clock != KB_FILTER_OF_DAY ||
	    filter->until_clock != KB_FILTER_OF_DAY)
		return;
	if (distance_of(*from, first) < distance_of(*until, first))
		*until = (int64_t)((uint64_t)*until + DAY_NS);
	else
		*from = (int64_t)((uint64_t)*from - DAY_NS);
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
