// SPDX-License-Identifier: MIT
/* Reading the counters of kbarman stat. One that leads a group reads all of it. */
#include "cli/stat/stat.h"

bool stat_is_beside(const struct stat_run *run, unsigned int i)
{
	return i < run->nr_events && run->events[i].event.flags & KB_PERF_GROUP;
}

struct kb_perf_place stat_place_of(const struct stat_run *run, size_t j)
{
	return (struct kb_perf_place) {
		.pid = run->places[j].pid,
		.cpu = run->places[j].cpu,
		.leader = -1,
		.on_exec = run->command.pid == run->places[j].pid && !run->delay_ms,
	};
}

/* @count: NULL: it has to be read. */
static void take_count(struct stat_counter *counter, const struct kb_perf_count *count)
{
	counter->before = counter->now;
	if (count)
		counter->now = *count;
	else
		kb_perf_counter_read(counter->fd, &counter->now);
}

/* Reads the group that event @i may lead at place @j. */
static void read_group(struct stat_run *run, unsigned int i, size_t j)
{
	struct kb_perf_count counts[KB_EVENTS_MAX];
	int nr = kb_perf_group_read(run->events[i].counters[j].fd, counts, KB_EVENTS_MAX), n = 0;

	for (unsigned int k = i; n < nr && (k == i || stat_is_beside(run, k)); k++)
		if (k == i || run->events[k].counters[j].beside)
			take_count(&run->events[k].counters[j], &counts[n++]);
}

void stat_read_event(struct stat_run *run, unsigned int i)
{
	struct stat_event *event = &run->events[i];

	for (size_t j = 0; j < run->nr_places; j++) {
		struct stat_counter *counter = &event->counters[j];

		if (counter->fd < 0 || counter->beside)
			continue;
		if (stat_is_beside(run, i + 1) && !counter->alone)
			read_group(run, i, j);
		else
			take_count(counter, NULL);
	}
}
