// SPDX-License-Identifier: MIT
/*
 * kbarman stat --rotate: groups of events take turns, in an order and of a length that nobody can
 * foresee (analysis/samples/turns.h says why). What takes turns are the groups in braces, and each
 * other event that needs a counter of the hardware. Other events are counted all the time, and so
 * is the clock of each place, which says for how long it could count.
 */
#include <linux/perf_event.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/session/event_list.h"
#include "cli/stat/stat.h"

#define MS	INT64_C(1000000)

/* Gives each group that takes turns its number, from 1 on. */
static void choose_groups(struct stat_run *run)
{
	for (unsigned int i = 0; i < run->nr_events; i++) {
		struct stat_event *event = &run->events[i];

		if (stat_is_beside(run, i))
			event->group = run->events[i - 1].group;
		else if (stat_is_beside(run, i + 1) || kb_perf_event_is_hardware(&event->event))
			event->group = ++run->nr_groups;
	}
}

int stat_turns_choose(struct stat_run *run)
{
	if (!run->turn_ms)
		return 0;
	choose_groups(run);
	if (run->nr_groups < 2) {
		cli_warn("--rotate: there are no two groups that could take turns, so nothing takes "
			 "turns");
		for (unsigned int i = 0; i < run->nr_events; i++)
			run->events[i].group = 0;
		run->nr_groups = 0;
		return 0;
	}
	kb_turn_draw_begin(&run->draw, run->nr_groups);
	run->turn = kb_turn_draw_next(&run->draw);
	return 0;
}

bool stat_turns_waits(const struct stat_run *run, const struct stat_event *event)
{
	return event->group && event->group != run->turn;
}

int stat_turns_open(struct stat_run *run)
{
	static const struct kb_perf_event clock = {
		.type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_DUMMY };

	if (!run->nr_groups)
		return 0;
	run->clocks = calloc(run->nr_places, sizeof(*run->clocks));
	if (!run->clocks)
		return cli_fail("out of memory");
	for (size_t j = 0; j < run->nr_places; j++) {
		struct kb_perf_place place = stat_place_of(run, j);

		place.user_only = true;
		run->clocks[j].fd = kb_perf_counter_open(&clock, &place);
	}
	for (unsigned int i = 0; i < run->nr_events; i++) {
		struct stat_event *event = &run->events[i];

		if (!event->group)
			continue;
		event->turns = calloc(run->nr_shares, sizeof(*event->turns));
		if (!event->turns)
			return cli_fail("out of memory");
	}
	return 0;
}

void stat_turns_close(struct stat_run *run)
{
	for (size_t j = 0; run->clocks && j < run->nr_places; j++)
		if (run->clocks[j].fd >= 0)
			close(run->clocks[j].fd);
	free(run->clocks);
	run->clocks = NULL;
	for (unsigned int i = 0; i < run->nr_events; i++) {
		free(run->events[i].turns);
		run->events[i].turns = NULL;
	}
}

static void for_clocks(const struct stat_run *run, void (*what)(int fd))
{
	for (size_t j = 0; run->clocks && j < run->nr_places; j++)
		if (run->clocks[j].fd >= 0)
			what(run->clocks[j].fd);
}

void stat_turns_start(struct stat_run *run)
{
	for_clocks(run, kb_perf_counter_start);
}

void stat_turns_stop(struct stat_run *run)
{
	for_clocks(run, kb_perf_counter_stop);
}

/* For how long @event could be counted at place @j, in the turn that has ended. */
static uint64_t time_of_turn(const struct stat_run *run, const struct stat_event *event, size_t j)
{
	const struct stat_counter *counter = &event->counters[j];

	/* A task runs on cores of all kinds, and the counter does not count on the others. */
	if (event->kind >= 0 && run->places[j].cpu < 0)
		return run->clocks[j].now - run->clocks[j].turn;
	return counter->now.running - counter->before.running;
}

/* Adds what was counted in the turn to the turns of each share. */
static void add_turn(struct stat_run *run, const struct stat_event *event)
{
	for (size_t share = 0; share < run->nr_shares; share++) {
		double value = 0, time = 0;

		for (size_t j = 0; j < run->nr_places; j++) {
			const struct stat_counter *counter = &event->counters[j];

			if (counter->fd < 0 || run->places[j].share != share)
				continue;
			value += (double)(counter->now.value - counter->before.value);
			time += (double)time_of_turn(run, event, j);
		}
		kb_turns_add(&event->turns[share], value, time);
	}
}

static void for_turn(const struct stat_run *run, void (*what)(int fd))
{
	for (unsigned int i = 0; i < run->nr_events; i++) {
		const struct stat_event *event = &run->events[i];

		for (size_t j = 0; event->group == run->turn && j < run->nr_places; j++)
			if (event->counters[j].fd >= 0 && !event->counters[j].beside)
				what(event->counters[j].fd);
	}
}

static void read_clocks(struct stat_run *run)
{
	for (size_t j = 0; j < run->nr_places; j++) {
		struct kb_perf_count count;

		if (run->clocks[j].fd >= 0 && kb_perf_counter_read(run->clocks[j].fd, &count))
			run->clocks[j].now = count.enabled;
	}
}

/* A turn that was cut off soon is left out: it says little, and its error a lot. */
void stat_turns_end(struct stat_run *run)
{
	int64_t took = kb_clock_ns(CLOCK_MONOTONIC) - run->turn_begun;

	if (!run->clocks)
		return;
	for_turn(run, kb_perf_counter_stop);
	read_clocks(run);
	for (unsigned int i = 0; i < run->nr_events; i++) {
		struct stat_event *event = &run->events[i];

		if (event->group != run->turn)
			continue;
		stat_read_event(run, i);
		if (took >= (int64_t)run->turn_ms * MS / 3)
			add_turn(run, event);
	}
	for (size_t j = 0; j < run->nr_places; j++)
		run->clocks[j].turn = run->clocks[j].now;
	run->turn = kb_turn_draw_next(&run->draw);
}

int64_t stat_turns_begin(struct stat_run *run, bool running)
{
	if (!run->nr_groups)
		return INT64_MAX;
	if (!running)
		for_turn(run, kb_perf_counter_start);
	run->turn_begun = kb_clock_ns(CLOCK_MONOTONIC);
	return run->turn_begun + kb_turn_draw_length(&run->draw, run->turn_ms);
}

void stat_turns_forget(struct stat_run *run)
{
	for (size_t j = 0; run->clocks && j < run->nr_places; j++)
		run->clocks[j].before = run->clocks[j].now;
	for (unsigned int i = 0; i < run->nr_events; i++)
		for (size_t share = 0; run->events[i].turns && share < run->nr_shares; share++)
			run->events[i].turns[share] = (struct kb_turns){ 0 };
}

struct stat_result stat_turns_result(const struct stat_run *run, const struct stat_event *event,
				     size_t share)
{
	const struct kb_turns *turns = &event->turns[share];
	struct stat_result result = { .in_turns = true, .running = (uint64_t)turns->time };
	struct kb_estimate estimate;

	for (size_t j = 0; j < run->nr_places; j++) {
		if (event->counters[j].fd < 0 || run->places[j].share != share)
			continue;
		result.here = true;
		result.enabled += run->clocks[j].now - run->clocks[j].before;
	}
	estimate = kb_turns_estimate(turns, (double)result.enabled);
	result.value = estimate.value;
	result.error = estimate.error;
	result.on_ns = (double)result.enabled;
	result.ran = turns->time > 0;
	/* What never ran has a true 0. */
	result.known = result.ran || !result.enabled;
	return result;
}
