// SPDX-License-Identifier: GPL-2.0-only
/* Rings that need too many rows give way. */
#include <linux/cpu.h>
#include <linux/log2.h>
#include <linux/math64.h>
#include <linux/sched.h>
#include <linux/smp.h>

#include "capture/collector.h"

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

bool kbarman_collector_make_way(struct kbarman_collector *collector, bool shared, bool *gave)
{
	*gave = collector->overwrites && collector_find_levels(collector, shared);
	return !*gave || collector_give_way(collector);
}
