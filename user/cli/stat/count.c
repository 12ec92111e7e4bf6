// SPDX-License-Identifier: MIT
/*
 * The counters of kbarman stat: an event at each place. The counters of a group are opened in the
 * order of the group; the first one that the kernel takes leads it.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/stat/stat.h"
#include "record/perf/pmus.h"
#include "record/perf/probe.h"

static bool may_leave_out_kernel(const struct stat_event *event, int error)
{
	return (error == -EACCES || error == -EPERM) && !event->user_only &&
	       !(event->event.flags & KB_PERF_NO_USER);
}

static bool is_absent(int error)
{
	return error == -ENOENT || error == -ENODEV || error == -EOPNOTSUPP;
}

/* Opens event @i at place @j. @leader is that of its group; -1: there is none yet. */
static void open_counter(struct stat_run *run, unsigned int i, size_t j, int leader)
{
	struct stat_event *event = &run->events[i];
	struct stat_counter *counter = &event->counters[j];
	struct kb_perf_place place = stat_place_of(run, j);
	int refused = 0;

	place.leader = leader;
	place.on_exec = place.on_exec && !stat_turns_waits(run, event);
	place.user_only = event->user_only;
	/* Whoever may come to lead the rest of a group reads it. */
	place.leads = leader < 0 && stat_is_beside(run, i + 1);
	counter->fd = kb_perf_counter_open(&event->event, &place);
	if (may_leave_out_kernel(event, counter->fd)) {
		refused = counter->fd;
		place.user_only = true;
		counter->fd = kb_perf_counter_open(&event->event, &place);
	}
	/* The events of a metric need not be a group. */
	if (counter->fd == -EINVAL && leader >= 0 && event->set) {
		counter->alone = true;
		place.leader = -1;
		counter->fd = kb_perf_counter_open(&event->event, &place);
	}
	counter->beside = counter->fd >= 0 && place.leader >= 0;
	if (counter->fd >= 0)
		event->user_only = place.user_only;
	else if (refused && leader < 0 && !is_absent(counter->fd))
		/* Such as a part of a group whose leader was refused: it can't lead. */
		counter->fd = refused;
}

/* Opens all events at place @j. */
static int open_place(struct stat_run *run, size_t j)
{
	int leader = -1;

	for (unsigned int i = 0; i < run->nr_events; i++) {
		struct stat_event *event = &run->events[i];
		int fd;

		if (!stat_is_beside(run, i))
			leader = -1;
		open_counter(run, i, j, leader);
		fd = event->counters[j].fd;
		if (fd == -EMFILE)
			return cli_fail("too many open files: %zu counters are needed; "
					"raise 'ulimit -n'", run->nr_places * run->nr_events);
		if (fd < 0 && !event->error)
			event->error = -fd;
		if (fd >= 0 && leader < 0)
			leader = fd;
	}
	return 0;
}

static bool is_open(const struct stat_run *run, const struct stat_event *event)
{
	for (size_t j = 0; j < run->nr_places; j++)
		if (event->counters[j].fd >= 0)
			return true;
	return false;
}

/* Is no chosen CPU a core that has the PMU of @event? */
static bool is_off_cpus(const struct stat_run *run, const struct stat_event *event)
{
	struct kb_cpu_pmus pmus;

	if (event->kind < 0 || !run->cpus_text)
		return false;
	kb_cpu_pmus_read("/sys", &pmus);
	for (size_t j = 0; j < run->nr_places; j++)
		if (kb_cpu_pmu_has("/sys", &pmus.pmus[event->kind], run->places[j].cpu))
			return false;
	return true;
}

int stat_open(struct stat_run *run)
{
	bool any = false;

	for (unsigned int i = 0; i < run->nr_events; i++) {
		struct stat_event *event = &run->events[i];

		event->error = 0;
		event->counters = calloc(run->nr_places, sizeof(*event->counters));
		if (!event->counters)
			return cli_fail("out of memory");
		for (size_t j = 0; j < run->nr_places; j++)
			event->counters[j].fd = -1;
	}
	for (size_t j = 0; j < run->nr_places; j++)
		if (open_place(run, j))
			return CLI_IMPOSSIBLE;
	for (unsigned int i = 0; i < run->nr_events; i++) {
		struct stat_event *event = &run->events[i];

		if (is_open(run, event))
			event->error = 0;
		any |= !event->error;
		event->off_cpus = is_absent(-event->error) && is_off_cpus(run, event);
	}
	if (!any && run->nr_events)
		return cli_fail("%s: %s", run->events[0].event.name, stat_why_not(&run->events[0]));
	return stat_turns_open(run);
}

/* But for those that wait for their turn. */
static void for_all_leaders(const struct stat_run *run, void (*what)(int fd))
{
	for (unsigned int i = 0; i < run->nr_events; i++) {
		const struct stat_event *event = &run->events[i];

		for (size_t j = 0; !stat_turns_waits(run, event) && j < run->nr_places; j++)
			if (event->counters[j].fd >= 0 && !event->counters[j].beside)
				what(event->counters[j].fd);
	}
}

void stat_start(struct stat_run *run)
{
	for_all_leaders(run, kb_perf_counter_start);
	stat_turns_start(run);
}

void stat_stop(struct stat_run *run)
{
	for_all_leaders(run, kb_perf_counter_stop);
	stat_turns_stop(run);
}

/* What takes turns is read at the end of each turn, of which this is one. */
void stat_read(struct stat_run *run)
{
	for (unsigned int i = 0; i < run->nr_events; i++)
		if (!run->events[i].turns)
			stat_read_event(run, i);
	stat_turns_end(run);
}

void stat_close(struct stat_run *run)
{
	stat_turns_close(run);
	for (unsigned int i = 0; i < run->nr_events; i++) {
		struct stat_event *event = &run->events[i];

		for (size_t j = 0; event->counters && j < run->nr_places; j++)
			if (event->counters[j].fd >= 0)
				close(event->counters[j].fd);
		free(event->counters);
		event->counters = NULL;
	}
}

/* ---- results ---- */

void stat_mean_add(struct stat_mean *mean, double value)
{
	double delta = value - mean->mean;

	mean->nr++;
	mean->mean += delta / mean->nr;
	mean->squares += delta * (value - mean->mean);
}

double stat_mean_deviation(const struct stat_mean *mean)
{
	if (mean->nr < 2 || !(mean->mean > 0))
		return 0;
	return 100 * sqrt(mean->squares / (mean->nr - 1) / mean->nr) / mean->mean;
}

/*
 * A task runs on cores of every kind, and a counter of one kind does not run on the others. How long
 * all kinds together counted, where each of them has the event: 0 if one lacks it.
 */
static uint64_t running_of_kinds(const struct stat_run *run, const struct stat_event *event, size_t j)
{
	const char *name = event->event.name + kb_metric_pmu(event->event.name);
	uint64_t running = 0;
	unsigned int kinds = 0;

	for (unsigned int i = 0; i < run->nr_events; i++) {
		const struct stat_event *other = &run->events[i];
		const struct stat_counter *counter = &other->counters[j];

		if (other->kind < 0 || other->set != event->set || counter->fd < 0 ||
		    (other != event && other->kind == event->kind) ||
		    strcmp(other->event.name + kb_metric_pmu(other->event.name), name))
			continue;
		running += counter->now.running - counter->before.running;
		kinds++;
	}
	return kinds == run->nr_kinds ? running : 0;
}

/* What @event counted at place @j since the last reading. */
static struct stat_result result_at(const struct stat_run *run, const struct stat_event *event,
				    size_t j)
{
	const struct stat_counter *counter = &event->counters[j];
	uint64_t running = counter->now.running - counter->before.running;
	struct stat_result result = {
		.value = (double)(counter->now.value - counter->before.value),
		.enabled = counter->now.enabled - counter->before.enabled,
		.running = running,
		.alone = counter->alone,
		.ran = running,
		.here = true,
	};
	double factor = 1;

	/* A counter that was never enabled has a true 0: the task did not run. */
	result.known = running || !result.enabled;
	result.on_ns = (double)result.enabled;
	if (event->kind >= 0 && run->places[j].cpu < 0) {
		result.running = running_of_kinds(run, event, j);
		result.elsewhere = !result.running && running < result.enabled;
		if (!result.running)
			result.running = running;
		/* Not on these cores at all, but on others: a true 0 as well. */
		result.known |= result.running > running;
		result.on_ns = (double)running;
	}
	if (result.running && result.running < result.enabled && !result.elsewhere)
		factor = (double)result.enabled / (double)result.running;
	result.value *= factor;
	if (event->kind >= 0 && run->places[j].cpu < 0)
		result.on_ns *= factor;
	return result;
}

/* The count of an event since the last reading, at the places of @share. */
static struct stat_result sum_up(const struct stat_run *run, const struct stat_event *event,
				 size_t share)
{
	struct stat_result sum = { 0 };

	if (event->turns)
		return stat_turns_result(run, event, share);
	for (size_t j = 0; j < run->nr_places; j++) {
		struct stat_result result;

		if (event->counters[j].fd < 0 || run->places[j].share != share)
			continue;
		result = result_at(run, event, j);
		sum.value += result.value;
		sum.enabled += result.enabled;
		sum.running += result.running;
		sum.on_ns += result.on_ns;
		sum.here = true;
		sum.known |= result.known;
		sum.elsewhere |= result.elsewhere;
		sum.alone |= result.alone;
		sum.ran |= result.ran;
	}
	return sum;
}

void stat_keep(struct stat_run *run)
{
	for (unsigned int i = 0; i < run->nr_events; i++) {
		struct stat_event *event = &run->events[i];

		for (size_t share = 0; event->totals && share < run->nr_shares; share++) {
			struct stat_result result = sum_up(run, event, share);
			struct stat_total *total = &event->totals[share];

			total->here |= result.here;
			total->known |= result.known;
			total->elsewhere |= result.elsewhere;
			total->alone |= result.alone;
			total->ran |= result.ran;
			if (!result.known)
				continue;
			stat_mean_add(&total->value, result.value);
			stat_mean_add(&total->enabled, (double)result.enabled);
			stat_mean_add(&total->running, (double)result.running);
			stat_mean_add(&total->on_ns, result.on_ns);
		}
	}
}

struct stat_result stat_result_of(const struct stat_run *run, const struct stat_event *event,
				  size_t share)
{
	const struct stat_total *total;

	if (!event->totals)
		return sum_up(run, event, share);
	total = &event->totals[share];
	return (struct stat_result) {
		.value = total->value.mean,
		.enabled = (uint64_t)total->enabled.mean,
		.running = (uint64_t)total->running.mean,
		.on_ns = total->on_ns.mean,
		.in_turns = event->group,
		.elsewhere = total->elsewhere,
		.alone = total->alone,
		.ran = total->ran,
		.deviation = stat_mean_deviation(&total->value),
		.here = total->here,
		.known = total->known,
	};
}

const char *stat_why_not(const struct stat_event *event)
{
	if (event->off_cpus)
		return "no chosen CPU is a core of this kind";
	switch (event->error) {
	case ENOENT:
	case ENODEV:
	case EOPNOTSUPP:
		return event->event.flags & KB_PERF_PRECISE ?
		       "not on this machine, or not so precisely" : "not on this machine";
	case EINVAL:
		if (event->event.flags & KB_PERF_GROUP)
			return "can't be counted at once with its group";
		if (kb_event_needs_slots(&event->event))
			return "is counted only beside slots, which lead the group: {slots,…}";
		return event->event.flags ? "can't be counted with its modifiers" : strerror(EINVAL);
	case EACCES:
	case EPERM:
		return "not allowed: run as root";
	case ESRCH:
		return "no such task";
	default:
		return strerror(event->error);
	}
}
