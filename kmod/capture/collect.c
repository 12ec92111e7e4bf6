// SPDX-License-Identifier: GPL-2.0-only
#include <linux/cpu.h>
#include <linux/irq_work.h>
#include <linux/jiffies.h>
#include <linux/log2.h>
#include <linux/math64.h>
#include <linux/numa.h>
#include <linux/overflow.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/smp.h>
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

/* ---- rings that need too many rows give way ---- */

static void collector_add_ended(struct kbarman_collector *collector,
				const struct kbarman_ended_rows *ended)
{
	u32 i;

	for (i = 0; i < ended->count; i++) {
		if (ended->rows[i].until == KBARMAN_NOT_ENDED)
			continue;
		kbarman_amounts_add(&collector->ended, ended, &ended->rows[i]);
		if (ended->rows[i].needed)
			kbarman_amounts_add(&collector->needed, ended, &ended->rows[i]);
	}
}

/* What @payer may have of @what beside the rows that have not ended. */
static u64 payer_room(const struct kbarman_collector *collector, u8 payer,
		      enum kbarman_resource what)
{
	const struct kbarman_shares *shares = &collector->capture->shares;
	u64 unit = what == KBARMAN_SHARE_STRINGS ? KBARMAN_STRING_UNIT : 1;
	u64 room = kbarman_shares_limit(shares, payer, what) * unit;
	u64 taken = shares->payers[payer].used[what] * unit;
	u64 ended = collector->ended.of[payer][what];

	taken -= min(taken, ended);
	return room - min(room, taken);
}

/*
 * How much each ring may keep of what the rows of @payer take. What is left empty is for tasks to
 * come; so if rings need more than half of the room, they give way until they need 3/8 of it.
 *
 * Several rings may need a row. @shared: as many of the rows that are kept as of those that there
 * are now. That is a guess; without it there is enough room whatever rings share.
 */
static u32 payer_level(const struct kbarman_collector *collector, u8 payer,
		       enum kbarman_resource what, u64 room, bool shared)
{
	u32 needed = collector->needed.of[payer][what];
	u64 sum = 0, budget;
	int cpu;

	if (needed <= room / 2)
		return ~0U;
	for_each_possible_cpu(cpu)
		sum += collector->rings[cpu].of[payer][what];
	/* The rows of processes are needed by no ring, but go with those of threads. */
	if (!shared)
		sum = min_t(u64, sum, needed);
	budget = mul_u64_u32_div(sum, room * 3 / 8, needed);
	return kbarman_shares_level(&collector->rings[0].of[payer][what],
				    sizeof(struct kbarman_amounts) / sizeof(u32), nr_cpu_ids,
				    budget);
}

/* False: no ring needs too much. */
static bool collector_find_levels(struct kbarman_collector *collector, bool shared)
{
	struct kbarman_capture *capture = collector->capture;
	u64 room[NR_SHARED];
	unsigned long flags;
	bool any = false;
	int payer, what;

	memset(&collector->ended, 0, sizeof(collector->ended));
	memset(&collector->needed, 0, sizeof(collector->needed));
	collector_add_ended(collector, &collector->tasks);
	collector_add_ended(collector, &collector->maps);
	for (payer = 0; payer < KBARMAN_PAYERS; payer++) {
		raw_spin_lock_irqsave(&capture->lock, flags);
		for (what = 0; what < NR_SHARED; what++)
			room[what] = payer_room(collector, payer, what);
		raw_spin_unlock_irqrestore(&capture->lock, flags);
		for (what = 0; what < NR_SHARED; what++) {
			collector->levels.of[payer][what] =
				payer_level(collector, payer, what, room[what], shared);
			any = any || collector->levels.of[payer][what] != ~0U;
		}
		cond_resched();
	}
	return any;
}

static void collector_add_pieces(struct kbarman_collector *collector,
				 const struct kbarman_ended_rows *ended, u8 payer,
				 enum kbarman_resource what)
{
	u32 i;

	if (what != ended->what && what != KBARMAN_SHARE_STRINGS)
		return;
	for (i = 0; i < ended->count; i++) {
		const struct kbarman_ended *row = &ended->rows[i];

		if (row->payer == payer && row->piece != NO_PIECE && row->until != KBARMAN_NOT_ENDED)
			collector->by_piece[row->piece] += what == ended->what ? 1 : row->strings;
	}
}

/* The first piece that may stay: this one and those behind it need no more than the level. */
static u32 piece_to_stay(struct kbarman_collector *collector, u8 payer, enum kbarman_resource what)
{
	u32 piece = LAST_PIECE + 1, sum = 0;

	memset(collector->by_piece, 0, sizeof(collector->by_piece));
	collector_add_pieces(collector, &collector->tasks, payer, what);
	collector_add_pieces(collector, &collector->maps, payer, what);
	while (piece && sum + collector->by_piece[piece - 1] <= collector->levels.of[payer][what]) {
		piece--;
		sum += collector->by_piece[piece];
	}
	return piece;
}

static bool ring_is_above_level(const struct kbarman_collector *collector, int cpu, u8 payer,
				enum kbarman_resource what)
{
	return collector->rings[cpu].of[payer][what] > collector->levels.of[payer][what];
}

/* The same for all that @cpu's ring, which was read, needs too much of; 0: it gives no way. */
static u32 ring_piece_to_stay(struct kbarman_collector *collector, int cpu)
{
	u32 piece = 0;
	int payer, what;

	for (payer = 0; payer < KBARMAN_PAYERS; payer++)
		for (what = 0; what < NR_SHARED; what++)
			if (ring_is_above_level(collector, cpu, payer, what))
				piece = max(piece, piece_to_stay(collector, payer, what));
	return piece;
}

static bool ring_needs_too_much(const struct kbarman_collector *collector, int cpu)
{
	int payer, what;

	for (payer = 0; payer < KBARMAN_PAYERS; payer++)
		for (what = 0; what < NR_SHARED; what++)
			if (ring_is_above_level(collector, cpu, payer, what))
				return true;
	return false;
}

/*
 * Find in @position from where on the ring may stay: the start of one of its pages. Of a large
 * ring a piece has many pages, so the piece that stays in part is looked at in pieces of its own.
 * False: kbarman_collect_stop() wants the worker to end.
 */
static bool ring_find_place(struct kbarman_collector *collector, int cpu, unsigned long *position)
{
	const struct kbarman_ring *ring = per_cpu_ptr(collector->cpu_rings, cpu);
	unsigned int shift = max_t(int, ilog2(kbarman_ring_size(ring)) - PIECES_SHIFT,
				   KBARMAN_RING_PAGE_SHIFT);
	unsigned long base;
	u32 piece;

	kbarman_ring_bounds(ring, &base);
	base = ALIGN_DOWN(base, KBARMAN_RING_PAGE);
	for (;;) {
		if (!kbarman_collector_read_ring(collector, ring, base, shift))
			return false;
		piece = ring_piece_to_stay(collector, cpu);
		if (shift == KBARMAN_RING_PAGE_SHIFT || piece < 2)
			break;
		base += (unsigned long)(piece - 2) << shift;
		shift = max_t(int, shift - PIECES_SHIFT, KBARMAN_RING_PAGE_SHIFT);
	}
	*position = piece ? base + ((unsigned long)(piece - 1) << shift) : base;
	return true;
}

struct place {
	struct kbarman_ring *ring;
	unsigned long position;
};

static void ring_drop_records(void *info)
{
	const struct place *place = info;

	kbarman_ring_drop(place->ring, place->position);
}

/* Interrupts @cpu for a moment. If it is offline it stays so meanwhile, and has no writer. */
static void ring_drop_records_of(struct kbarman_collector *collector, int cpu,
				 unsigned long position)
{
	struct place place = { .ring = per_cpu_ptr(collector->cpu_rings, cpu), .position = position };

	cpus_read_lock();
	if (cpu_online(cpu))
		smp_call_function_single(cpu, ring_drop_records, &place, true);
	else
		ring_drop_records(&place);
	cpus_read_unlock();
}

/* False: kbarman_collect_stop() wants the worker to end. */
static bool collector_give_way(struct kbarman_collector *collector)
{
	unsigned long position;
	int cpu;

	for_each_possible_cpu(cpu) {
		if (!ring_needs_too_much(collector, cpu))
			continue;
		if (!ring_find_place(collector, cpu, &position))
			return false;
		ring_drop_records_of(collector, cpu, position);
	}
	return true;
}

/*
 * If rings need too many rows, those that need most drop their oldest records. False:
 * kbarman_collect_stop() wants the worker to end. @gave: whether any ring did. @shared: as of
 * payer_level().
 */
static bool collector_make_way(struct kbarman_collector *collector, bool shared, bool *gave)
{
	*gave = collector->overwrites && collector_find_levels(collector, shared);
	return !*gave || collector_give_way(collector);
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
		gave = false;
		if (round < 2 && !collector_make_way(collector, !round, &gave))
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
