// SPDX-License-Identifier: GPL-2.0-only
/* Rings that need too many rows give way. */
#include <linux/cpu.h>
#include <linux/log2.h>
#include <linux/math64.h>
#include <linux/sched.h>
#include <linux/smp.h>

#include "capture/collector.h"

static void collector_add_overs(struct kbarman_collector *it, const struct kbarman_overs *overs)
{
	u32 i;

	for (i = 0; i < overs->count; i++) {
		kbarman_amounts_add(&it->over, overs, &overs->rows[i]);
		if (overs->rows[i].needed)
			kbarman_amounts_add(&it->needed, overs, &overs->rows[i]);
	}
}

/* What @payer may have of @what beside the rows that are not over. */
static u64 payer_room(const struct kbarman_collector *it, u8 payer, enum kbarman_resource what)
{
	const struct kbarman_shares *shares = &it->capture->shares;
	u64 unit = what == KBARMAN_SHARE_STRINGS ? KBARMAN_STRING_UNIT : 1;
	u64 room = kbarman_shares_limit(shares, payer, what) * unit;
	u64 taken = shares->payers[payer].used[what] * unit;
	u64 over = it->over.of[payer][what];

	taken -= min(taken, over);
	return room - min(room, taken);
}

/*
 * How much each ring may keep of what the rows of @payer take. What is left empty is for tasks to
 * come; so if rings need more than half of the room, they give way until they need 3/8 of it.
 *
 * Several rings may need a row. @shared: as many of the rows that are kept as of those that there
 * are now. That is a guess; without it there is enough room whatever rings share.
 */
static u32 payer_level(const struct kbarman_collector *it, u8 payer, enum kbarman_resource what,
		       u64 room, bool shared)
{
	u32 needed = it->needed.of[payer][what];
	u64 sum = 0, budget;
	int cpu;

	if (needed <= room / 2)
		return ~0U;
	for_each_possible_cpu(cpu)
		sum += it->rings[cpu].of[payer][what];
	/* The rows of processes are needed by no ring, but go with those of threads. */
	if (!shared)
		sum = min_t(u64, sum, needed);
	budget = mul_u64_u32_div(sum, room * 3 / 8, needed);
	return kbarman_shares_level(&it->rings[0].of[payer][what],
				    sizeof(struct kbarman_amounts) / sizeof(u32), nr_cpu_ids,
				    budget);
}

/* False: no ring needs too much. */
static bool collector_find_levels(struct kbarman_collector *it, bool shared)
{
	struct kbarman_capture *capture = it->capture;
	u64 room[NR_SHARED];
	unsigned long flags;
	bool any = false;
	int payer, what;

	memset(&it->over, 0, sizeof(it->over));
	memset(&it->needed, 0, sizeof(it->needed));
	collector_add_overs(it, &it->tasks);
	collector_add_overs(it, &it->maps);
	for (payer = 0; payer < KBARMAN_PAYERS; payer++) {
		raw_spin_lock_irqsave(&capture->lock, flags);
		for (what = 0; what < NR_SHARED; what++)
			room[what] = payer_room(it, payer, what);
		raw_spin_unlock_irqrestore(&capture->lock, flags);
		for (what = 0; what < NR_SHARED; what++) {
			it->levels.of[payer][what] = payer_level(it, payer, what, room[what],
								 shared);
			any = any || it->levels.of[payer][what] != ~0U;
		}
		cond_resched();
	}
	return any;
}

static void collector_add_pieces(struct kbarman_collector *it, const struct kbarman_overs *overs,
				 u8 payer, enum kbarman_resource what)
{
	u32 i;

	if (what != overs->what && what != KBARMAN_SHARE_STRINGS)
		return;
	for (i = 0; i < overs->count; i++) {
		const struct kbarman_over *over = &overs->rows[i];

		if (over->payer == payer && over->piece != NO_PIECE)
			it->by_piece[over->piece] += what == overs->what ? 1 : over->strings;
	}
}

/* The first piece that may stay: this one and those behind it need no more than the level. */
static u32 piece_to_stay(struct kbarman_collector *it, u8 payer, enum kbarman_resource what)
{
	u32 piece = LAST_PIECE + 1, sum = 0;

	memset(it->by_piece, 0, sizeof(it->by_piece));
	collector_add_pieces(it, &it->tasks, payer, what);
	collector_add_pieces(it, &it->maps, payer, what);
	while (piece && sum + it->by_piece[piece - 1] <= it->levels.of[payer][what]) {
		piece--;
		sum += it->by_piece[piece];
	}
	return piece;
}

static bool ring_is_above_level(const struct kbarman_collector *it, int cpu, u8 payer,
				enum kbarman_resource what)
{
	return it->rings[cpu].of[payer][what] > it->levels.of[payer][what];
}

/* The same for all that @cpu's ring, which was read, needs too much of; 0: it gives no way. */
static u32 ring_piece_to_stay(struct kbarman_collector *it, int cpu)
{
	u32 piece = 0;
	int payer, what;

	for (payer = 0; payer < KBARMAN_PAYERS; payer++)
		for (what = 0; what < NR_SHARED; what++)
			if (ring_is_above_level(it, cpu, payer, what))
				piece = max(piece, piece_to_stay(it, payer, what));
	return piece;
}

static bool ring_needs_too_much(const struct kbarman_collector *it, int cpu)
{
	int payer, what;

	for (payer = 0; payer < KBARMAN_PAYERS; payer++)
		for (what = 0; what < NR_SHARED; what++)
			if (ring_is_above_level(it, cpu, payer, what))
				return true;
	return false;
}

/*
 * Find in @position from where on the ring may stay: the start of one of its pages. Of a large
 * ring a piece has many pages, so the piece that stays in part is looked at in pieces of its own.
 * False: kbarman_collect_stop() wants the worker to end.
 */
static bool ring_find_place(struct kbarman_collector *it, int cpu, unsigned long *position)
{
	const struct kbarman_ring *ring = per_cpu_ptr(it->cpu_rings, cpu);
	unsigned int shift = max_t(int, ilog2(kbarman_ring_size(ring)) - PIECES_SHIFT,
				   KBARMAN_RING_PAGE_SHIFT);
	unsigned long base;
	u32 piece;

	kbarman_ring_bounds(ring, &base);
	base = ALIGN_DOWN(base, KBARMAN_RING_PAGE);
	for (;;) {
		if (!kbarman_collector_read_ring(it, ring, base, shift))
			return false;
		piece = ring_piece_to_stay(it, cpu);
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
static void ring_drop_records_of(struct kbarman_collector *it, int cpu, unsigned long position)
{
	struct place place = { .ring = per_cpu_ptr(it->cpu_rings, cpu), .position = position };

	cpus_read_lock();
	if (cpu_online(cpu))
		smp_call_function_single(cpu, ring_drop_records, &place, true);
	else
		ring_drop_records(&place);
	cpus_read_unlock();
}

/* False: kbarman_collect_stop() wants the worker to end. */
static bool collector_give_way(struct kbarman_collector *it)
{
	unsigned long position;
	int cpu;

	for_each_possible_cpu(cpu) {
		if (!ring_needs_too_much(it, cpu))
			continue;
		if (!ring_find_place(it, cpu, &position))
			return false;
		ring_drop_records_of(it, cpu, position);
	}
	return true;
}

bool kbarman_collector_make_way(struct kbarman_collector *it, bool shared, bool *gave)
{
	*gave = it->overwrites && collector_find_levels(it, shared);
	return !*gave || collector_give_way(it);
}
