// SPDX-License-Identifier: GPL-2.0-only
/*
 * The counters of a turn exist all the time, and are enabled only while they have the turn. Where a
 * turn ends and where one begins, the CPU writes a sample without PC. So a reader sees from when to
 * when each value was counted: in all samples behind the first one, up to the last one. What is
 * counted between these two records and the neighbouring turns is in no record, and told as such.
 */
#include <linux/cpumask.h>
#include <linux/jiffies.h>
#include <linux/perf_event.h>
#include <linux/random.h>
#include <linux/smp.h>
#include <linux/workqueue.h>

#include "here.h"
#include "pmu/overflow.h"
#include "pmu/turns.h"

u8 kbarman_turns_of_event(const struct kbarman_session *session, unsigned int i)
{
	const struct kbarman_event *events = session->events;
	unsigned int j;
	u8 turn = 0;

	if (!(events[i].flags & KBARMAN_EVENT_TURN))
		return 0;
	for (j = 0; j <= i; j++)
		if (events[j].flags & KBARMAN_EVENT_TURN && !(events[j].flags & KBARMAN_EVENT_GROUP))
			turn++;
	return turn;
}

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

/* ---- which turn is next, and when ---- */

/* In each round every group has one turn. */
static void turns_draw(struct kbarman_turns *turns)
{
	unsigned int i, j;

	if (turns->left) {
		turns->now = turns->order[--turns->left];
		return;
	}
	for (i = 0; i < turns->nr; i++) {
		j = get_random_u32() % (i + 1);
		turns->order[i] = turns->order[j];
		turns->order[j] = i + 1;
	}
	turns->left = turns->nr - 1;
	turns->now = turns->order[turns->left];
}

/* From two thirds to four thirds of what was asked for. */
static unsigned long turns_length(const struct kbarman_session *session)
{
	u32 least = session->config.turn_ms * 2 / 3;

	return msecs_to_jiffies(least + get_random_u32() % (least + 1));
}

static void turns_next(struct work_struct *work)
{
	struct kbarman_session *session = container_of(to_delayed_work(work),
						       struct kbarman_session, turns.next);
	unsigned long pause = 1;
	int cpu;

	/* Only try the lock: its holder may be waiting for this work to end. */
	if (mutex_trylock(&session->lock)) {
		turns_draw(&session->turns);
		for_each_cpu(cpu, session->recording) {
			turn_end(session, cpu);
			turn_begin(session, cpu);
		}
		mutex_unlock(&session->lock);
		pause = turns_length(session);
	}
	schedule_delayed_work(&session->turns.next, pause);
}

void kbarman_turns_start(struct kbarman_session *session)
{
	struct kbarman_turns *turns = &session->turns;
	unsigned int i;

	turns->nr = 0;
	turns->left = 0;
	for (i = 0; i < session->config.nr_events; i++)
		turns->nr = max(turns->nr, kbarman_turns_of_event(session, i));
	INIT_DELAYED_WORK(&turns->next, turns_next);
	if (turns->nr)
		schedule_delayed_work(&turns->next, 0);
}

void kbarman_turns_stop(struct kbarman_session *session)
{
	cancel_delayed_work_sync(&session->turns.next);
}
