// SPDX-License-Identifier: GPL-2.0-only
#include <linux/bitops.h>
#include <linux/errno.h>
#include <linux/hash.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/sched/mm.h>

#include "compat/cmpxchg.h"
#include "maps/queue.h"
#include "ring/clock.h"

#define QUEUE_MANY	(KBARMAN_QUEUE_SIZE / 8)	/* with so many the worker begins at once */
#define GAP_TRIES	8

/* The index in shares[] of the current process. */
static u32 share_here(const struct kbarman_maps *maps)
{
	return hash_32(current->tgid ^ maps->share_salt, KBARMAN_MAPS_SHARE_BITS);
}

struct kbarman_fact *kbarman_fact_claim(struct kbarman_maps *maps, unsigned int places)
{
	unsigned int head = READ_ONCE(maps->head);
	u32 share = share_here(maps);
	int has = atomic_add_return(places, &maps->shares[share]);
	struct kbarman_fact *fact;
	int taken;

	do {
		/*
		 * Pairs with the release in kbarman_fact_take(): the place is free. If `tail` has
		 * passed `head` in the meantime, the difference is negative, and the cmpxchg below
		 * fails.
		 */
		taken = head - smp_load_acquire(&maps->tail);
		if (taken + has > (int)KBARMAN_QUEUE_SIZE) {
			atomic_sub(places, &maps->shares[share]);
			return NULL;
		}
	} while (!try_cmpxchg(&maps->head, &head, head + places));
	fact = &maps->queue[head % KBARMAN_QUEUE_SIZE].fact;
	fact->share = share;
	fact->places = places;
	fact->task_id = current->pid;
	fact->timestamp = kbarman_clock();
	return fact;
}

/* The part number @part of a name, which is in the place @at and those behind it. */
static char *name_part(struct kbarman_maps *maps, unsigned int at, unsigned int part,
		       unsigned int *bytes)
{
	union kbarman_place *place = &maps->queue[(at + part) % KBARMAN_QUEUE_SIZE];

	*bytes = part ? sizeof(place->more) : sizeof(place->name);
	return part ? place->more : place->name;
}

struct kbarman_fact *kbarman_fact_claim_map(struct kbarman_maps *maps,
					    const struct kbarman_mapping *mapping)
{
	const unsigned int inside = sizeof(maps->queue->name);
	unsigned int behind = mapping->length > inside ? mapping->length - inside : 0;
	unsigned int done, part, bytes, at;
	struct kbarman_fact *fact;

	fact = kbarman_fact_claim(maps, 1 + DIV_ROUND_UP(behind, sizeof(maps->queue->more)));
	if (!fact)
		return NULL;
	fact->mapping = *mapping;
	at = container_of(fact, union kbarman_place, fact) - maps->queue;
	for (done = 0, part = 0; done < mapping->length; done += bytes, part++) {
		char *to = name_part(maps, at, part, &bytes);

		memcpy(to, mapping->name + done, min(bytes, mapping->length - done));
	}
	return fact;
}

void kbarman_maps_kick(struct kbarman_maps *maps)
{
	set_bit(KBARMAN_WANTED_NOW, &maps->wanted);
	irq_work_queue(&maps->kick);
}

void kbarman_fact_publish(struct kbarman_maps *maps, struct kbarman_fact *fact,
			  enum kbarman_fact_kind kind)
{
	/* Pairs with the acquire in kbarman_fact_take(). */
	smp_store_release(&fact->kind, kind);
	if (kind == KBARMAN_FACT_SAMPLED || kind == KBARMAN_FACT_STACK ||
	    READ_ONCE(maps->head) - READ_ONCE(maps->tail) > QUEUE_MANY) {
		kbarman_maps_kick(maps);
		return;
	}
	smp_mb();	/* pairs with that of maps_work(): who finds the bit set is heeded there */
	if (!test_bit(KBARMAN_WANTED_SOON, &maps->wanted) &&
	    !test_and_set_bit(KBARMAN_WANTED_SOON, &maps->wanted))
		irq_work_queue(&maps->kick);
}

static void fact_copy_name(struct kbarman_maps *maps, struct kbarman_fact *fact)
{
	unsigned int length = fact->mapping.length, done, part, bytes;

	for (done = 0, part = 0; done < length; done += bytes, part++) {
		const char *from = name_part(maps, maps->tail, part, &bytes);

		memcpy(maps->name + done, from, min(bytes, length - done));
	}
	fact->mapping.name = maps->name;
}

int kbarman_fact_take(struct kbarman_maps *maps, unsigned int end, struct kbarman_fact *fact)
{
	struct kbarman_fact *place = &maps->queue[maps->tail % KBARMAN_QUEUE_SIZE].fact;
	unsigned int i;

	if (maps->tail == end)
		return 0;
	/* Pairs with the release in kbarman_fact_publish(). */
	if (smp_load_acquire(&place->kind) == KBARMAN_FACT_NONE)
		return -EAGAIN;
	*fact = *place;
	if (fact->kind == KBARMAN_FACT_MAP)
		fact_copy_name(maps, fact);
	for (i = 0; i < fact->places; i++)
		WRITE_ONCE(maps->queue[(maps->tail + i) % KBARMAN_QUEUE_SIZE].fact.kind,
			   KBARMAN_FACT_NONE);
	WRITE_ONCE(maps->busy, fact->share + 1);
	/* Pairs with the acquire in kbarman_facts_are_pending(). */
	atomic_sub_return_release(fact->places, &maps->shares[fact->share]);
	/* Pairs with the acquire in kbarman_fact_claim(). */
	smp_store_release(&maps->tail, maps->tail + fact->places);
	return 1;
}

void kbarman_fact_done(struct kbarman_maps *maps)
{
	smp_store_release(&maps->busy, 0);
}

bool kbarman_facts_are_pending(const struct kbarman_maps *maps)
{
	u32 share = share_here(maps);

	/* Pair with the releases of the worker: either the fact is pending, or what it said is known. */
	return atomic_read_acquire(&maps->shares[share]) || smp_load_acquire(&maps->busy) == share + 1;
}

/* ---- what is left out ---- */

void kbarman_fact_leave_out(struct kbarman_maps *maps)
{
	atomic_inc(&maps->left_out);
	kbarman_maps_kick(maps);
}

static bool gap_remember(struct kbarman_maps *maps, struct mm_struct *mm)
{
	unsigned int i, at = hash_ptr(mm, KBARMAN_MAPS_GAP_BITS);

	for (i = 0; i < GAP_TRIES; i++) {
		struct mm_struct **gap = &maps->gaps[(at + i) % ARRAY_SIZE(maps->gaps)];
		struct mm_struct *other = NULL;

		if (READ_ONCE(*gap) == mm)
			return true;
		mmgrab(mm);
		if (try_cmpxchg(gap, &other, mm))
			return true;
		/* Never the last reference: the caller or its child owns the address space. */
		mmdrop(mm);
		if (other == mm)
			return true;
	}
	return false;
}

void kbarman_fact_leave_out_for_good(struct kbarman_maps *maps, struct mm_struct *mm)
{
	set_bit(gap_remember(maps, mm) ? KBARMAN_WANTED_GAPS : KBARMAN_WANTED_DISTRUST,
		&maps->wanted);
	kbarman_fact_leave_out(maps);
}

struct mm_struct *kbarman_maps_next_gap(struct kbarman_maps *maps, unsigned int *at)
{
	struct mm_struct *mm = NULL;

	for (; !mm && *at < ARRAY_SIZE(maps->gaps); ++*at)
		mm = READ_ONCE(maps->gaps[*at]) ? xchg(&maps->gaps[*at], NULL) : NULL;
	return mm;
}
