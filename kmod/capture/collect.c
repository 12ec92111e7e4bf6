// SPDX-License-Identifier: GPL-2.0-only
#include <linux/irq_work.h>
#include <linux/jiffies.h>
#include <linux/math64.h>
#include <linux/numa.h>
#include <linux/overflow.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

#include "capture/collect.h"
#include "capture/collector.h"
#include "capture/header.h"
#include "capture/memory.h"
#include "capture/tables.h"
#include "capture/work.h"
#include "ring/clock.h"

/* Under the lock: */
#define WINDOW		64	/* rows, of which at most these are emptied: */
#define EMPTIED_AT_ONCE	4	/* rows, and at most */
#define FREED_AT_ONCE	32	/* units of strings, and one string more */

#define SLACK_HZ	1000	/* clocks of two CPUs differ by less than a second / this */
#define REST		4	/* a look in vain: a rest of this many times its length follows */

/* ---- which rows are needed ---- */

/* A process has a name as long as one of its threads has a record. */
static void ended_note_processes(struct kbarman_ended_rows *tasks)
{
	u32 i, leader;

	for (i = 0; i < tasks->count; i++) {
		const struct kbarman_ended *thread = &tasks->rows[i];

		cond_resched();
		if (!thread->needed || thread->process == thread->id)
			continue;
		for (leader = kbarman_ended_first(tasks, thread->process);
		     leader < tasks->count && tasks->rows[leader].id == thread->process; leader++)
			if (tasks->rows[leader].from <= thread->until &&
			    thread->from <= tasks->rows[leader].until)
				tasks->rows[leader].needed = true;
	}
}

/*
 * Find the rows that are needed. If they are too many, rings give way, and are read again. The
 * first time what rings share is a guess, the second time it is not. False: kbarman_collect_stop()
 * wants the worker to end.
 */
static bool collector_find_needed(struct kbarman_collector *collector)
{
	bool gave = true;
	int round;

	for (round = 0; gave; round++) {
		if (!kbarman_collector_read_rings(collector))
			return false;
		ended_note_processes(&collector->tasks);
		gave = false;
		if (round < 2 && !kbarman_collector_make_way(collector, !round, &gave))
			return false;
	}
	return true;
}

/* ---- the others are emptied ---- */

/* Of the rows from @first on, a few. Returns where it came to. */
static u32 ended_empty_some(struct kbarman_collector *collector, struct kbarman_ended_rows *ended,
			    u32 first, u32 (*drop_row)(struct kbarman_capture *capture, u32 row),
			    u32 *emptied)
{
	struct kbarman_capture *capture = collector->capture;
	u32 i, end = min(first + WINDOW, ended->count), rows = 0, units = 0;
	unsigned long flags;

	raw_spin_lock_irqsave(&capture->lock, flags);
	for (i = first; i < end && rows < EMPTIED_AT_ONCE && units < FREED_AT_ONCE; i++) {
		if (ended->rows[i].needed || ended->rows[i].until == KBARMAN_NOT_ENDED)
			continue;
		/* Before the first row goes: a reader then copies again. */
		if (!rows++)
			kbarman_header_next_generation(capture);
		units += drop_row(capture, ended->rows[i].row);
	}
	raw_spin_unlock_irqrestore(&capture->lock, flags);
	*emptied += rows;
	return i;
}

/* Returns how many. */
static u32 ended_empty(struct kbarman_collector *collector, struct kbarman_ended_rows *ended,
		       u32 (*drop_row)(struct kbarman_capture *capture, u32 row))
{
	u32 at = 0, emptied = 0;

	while (at < ended->count && READ_ONCE(collector->on)) {
		at = ended_empty_some(collector, ended, at, drop_row, &emptied);
		cond_resched();
	}
	return emptied;
}

/* True: it was worth it, a sixteenth of a table is empty again. */
static bool collector_collect(struct kbarman_collector *collector)
{
	struct kbarman_capture *capture = collector->capture;
	const struct kbarman_layout *layout = &capture->layout;
	unsigned long flags;
	u32 maps, tasks;

	/* Another CPU may be about to write a record that needs a row which ends now. */
	collector->now = kbarman_clock() - collector->slack;
	kbarman_ended_gather(collector);
	if (!collector_find_needed(collector))
		return false;
	maps = ended_empty(collector, &collector->maps, kbarman_tables_drop_map);
	tasks = ended_empty(collector, &collector->tasks, kbarman_tables_drop_task);
	raw_spin_lock_irqsave(&capture->lock, flags);
	kbarman_shares_looked(&capture->shares);
	raw_spin_unlock_irqrestore(&capture->lock, flags);
	return maps >= layout->max_maps / 16 || tasks >= layout->max_tasks / 16;
}

static void collector_work(struct work_struct *work)
{
	struct kbarman_collector *collector =
		container_of(work, struct kbarman_collector, work.work);
	unsigned long begun = jiffies;

	if (!collector_collect(collector))
		WRITE_ONCE(collector->rested, jiffies + REST * (jiffies - begun));
}

/* Context: hard interrupt, a thread on PREEMPT_RT. */
static void collector_kick(struct irq_work *work)
{
	struct kbarman_collector *collector = container_of(work, struct kbarman_collector, kick);
	unsigned long rested;

	if (!smp_load_acquire(&collector->on))	/* pairs with [1] */
		return;
	rested = READ_ONCE(collector->rested);
	queue_delayed_work(kbarman_wq, &collector->work,
			   time_before(jiffies, rested) ? rested - jiffies : 0);
}

/* ---- its life ---- */

u64 kbarman_collect_memory(const struct kbarman_layout *layout)
{
	return sizeof(struct kbarman_collector) + nr_cpu_ids * sizeof(struct kbarman_amounts) +
	       ((u64)layout->max_tasks + layout->max_maps) * sizeof(struct kbarman_ended);
}

bool kbarman_collect_create(struct kbarman_capture *capture)
{
	struct kbarman_collector *collector = kzalloc(sizeof(*collector), GFP_KERNEL);

	if (!collector)
		return false;
	capture->collector = collector;
	collector->capture = capture;
	init_irq_work(&collector->kick, collector_kick);
	INIT_DELAYED_WORK(&collector->work, collector_work);
	collector->tasks.what = KBARMAN_SHARE_TASKS;
	collector->maps.what = KBARMAN_SHARE_MAPS;
	collector->rings = kbarman_memory_pages(
		array_size(nr_cpu_ids, sizeof(struct kbarman_amounts)), NUMA_NO_NODE);
	collector->tasks.rows = kbarman_memory_pages(
		array_size(capture->layout.max_tasks, sizeof(struct kbarman_ended)), NUMA_NO_NODE);
	collector->maps.rows = kbarman_memory_pages(
		array_size(capture->layout.max_maps, sizeof(struct kbarman_ended)), NUMA_NO_NODE);
	return collector->rings && collector->tasks.rows && collector->maps.rows;
}

void kbarman_collect_free(struct kbarman_capture *capture)
{
	if (!capture->collector)
		return;
	kbarman_memory_free(capture->collector->maps.rows);
	kbarman_memory_free(capture->collector->tasks.rows);
	kbarman_memory_free(capture->collector->rings);
	kfree(capture->collector);
}

void kbarman_collect_start(struct kbarman_capture *capture, struct kbarman_ring __percpu *rings)
{
	if (!capture->collector)
		return;
	capture->collector->rested = jiffies;
	capture->collector->cpu_rings = rings;
	/* The start of the session has chosen the clock. */
	capture->collector->second = kbarman_clock_hz();
	capture->collector->slack = div_u64(kbarman_clock_hz(), SLACK_HZ);
	smp_store_release(&capture->collector->on, true);	/* [1] */
}

void kbarman_collect_stop(struct kbarman_capture *capture)
{
	if (!capture->collector)
		return;
	WRITE_ONCE(capture->collector->on, false);
	irq_work_sync(&capture->collector->kick);
	cancel_delayed_work_sync(&capture->collector->work);
}
