// SPDX-License-Identifier: GPL-2.0-only
/*
 * The counters of a turn exist all the time, and are enabled only while they have the turn. Where a
 * turn ends and where one begins, the CPU writes a sample without PC. So a reader sees from when to
 * when each value was counted: in all samples behind the first one, up to the last one. What is
 * counted between these two records and the neighbouring turns is in no record, and told as such.
 */
#include <linux/cpumask.h>
#include <linux/perf_event.h>
#include <linux/smp.h>
#include <linux/string.h>

#include "capture/header.h"
#include "here.h"
#include "pmu/overflow.h"
#include "pmu/turns.h"
#include "ring/clock.h"

/* A bit for each counter that has @turn; 0: that has any. */
static u32 turns_counters(const struct kbarman_counters *counters, u8 turn)
{
	unsigned int i;
	u32 mask = 0;

	for (i = 0; i < counters->nr; i++)
		if (turn ? counters->turn[i] == turn : counters->turn[i])
			mask |= 1U << i;
	return mask;
}

static void turns_switch(struct kbarman_counters *counters, u32 mask,
			 void (*what)(struct perf_event *event))
{
	unsigned int i;

	for (i = 0; i < counters->nr; i++)
		if (mask >> i & 1)
			what(counters->events[i]);
}

int kbarman_turns_try(const struct kbarman_session *session, struct kbarman_counters *counters,
		      struct kbarman_start *report)
{
	unsigned int i;
	u8 turn;

	for (turn = 1; turn <= session->turns.nr; turn++) {
		u32 mask = turns_counters(counters, turn);

		turns_switch(counters, mask, perf_event_enable);
		for (i = 0; i < counters->nr; i++) {
			if (!(mask >> i & 1) || !kbarman_pmu_has_lost_place(counters->events[i]))
				continue;
			report->event = counters->wanted[i];
			return -ENOSPC;
		}
		turns_switch(counters, mask, perf_event_disable);
	}
	counters->resting = turns_counters(counters, 0);
	return 0;
}

/* ---- one turn and the next ---- */

/* Context: interrupts off. The counters of the turn have stopped. */
static void turn_take_last(void *data)
{
	struct kbarman_cpu *here = kbarman_here(data);
	struct kbarman_counters *counters = &here->counters;

	kbarman_pmu_count(here);
	WRITE_ONCE(counters->resting, counters->resting | counters->ended);
	WRITE_ONCE(counters->ended, 0);
}

static void turn_end(struct kbarman_session *session, int cpu)
{
	struct kbarman_counters *counters = &per_cpu_ptr(session->each, cpu)->counters;
	u32 mask = turns_counters(counters, 0) & ~READ_ONCE(counters->resting);

	if (!mask || !READ_ONCE(counters->ready))
		return;
	WRITE_ONCE(counters->ended, mask);
	turns_switch(counters, mask, perf_event_disable);
	smp_call_function_single(cpu, turn_take_last, kbarman_probe_data(session), true);
}

/* Context: interrupts off. The counters of the turn count. */
static void turn_take_first(void *data)
{
	struct kbarman_cpu *here = kbarman_here(data);

	kbarman_pmu_count(here);
	kbarman_pmu_rouse(here, turns_counters(&here->counters, here->session->turns.now));
}

static void turn_begin(struct kbarman_session *session, int cpu)
{
	struct kbarman_counters *counters = &per_cpu_ptr(session->each, cpu)->counters;
	u32 mask = turns_counters(counters, session->turns.now);

	if (!mask || !READ_ONCE(counters->ready))
		return;
	turns_switch(counters, mask, perf_event_enable);
	smp_call_function_single(cpu, turn_take_first, kbarman_probe_data(session), true);
}

int kbarman_turns_give(struct kbarman_session *session, u32 turn)
{
	struct kbarman_turns *turns = &session->turns;
	int cpu;

	if (!turn || turn > turns->nr)
		return -EINVAL;
	turns->now = turn;
	turns->given++;
	turns->since = kbarman_clock();
	for_each_cpu(cpu, session->recording) {
		turn_end(session, cpu);
		turn_begin(session, cpu);
	}
	return 0;
}

void kbarman_turns_start(struct kbarman_session *session)
{
	struct kbarman_turns *turns = &session->turns;
	unsigned int i;

	memset(turns, 0, sizeof(*turns));
	for (i = 0; i < session->config.nr_events; i++)
		turns->nr = max_t(u32, turns->nr, session->events[i].turn);
}

void kbarman_turns_tell(struct kbarman_session *session)
{
	if (session->turns.nr)
		kbarman_header_fact(session->capture, "turned", "%llu,%llu", session->turns.given,
				    session->turns.since);
}
