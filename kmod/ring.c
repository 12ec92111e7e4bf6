// SPDX-License-Identifier: GPL-2.0-only
/*
 * The ring: see ring.h for what it promises. Includes nothing but its own header,
 * so that the host tests compile this very file.
 *
 * Barriers, and where their partners are:
 *
 *	[A] reserve: read_offset before the overwriting data (smp_wmb)
 *	    reader:  the copied data before read_offset again (smp_rmb)
 *	[B] commit:  data before write_offset (smp_store_release)
 *	    reader:  write_offset before the data (smp_load_acquire)
 *	[C] consume: the reader's copy before read_offset (smp_store_release)
 *	    reserve: read_offset before new data, by control dependency
 *
 * Order between a writer and those that interrupt it is program order of one CPU:
 * barrier() keeps the compiler from changing it.
 */
#include "ring.h"

#define WORD		sizeof(bm_uintptr)
#define SNAPSHOT_TRIES	16

/*
 * The low word of an offset in the header, the only part that is live on a 32-bit
 * machine: an unsigned long can be stored and exchanged at once everywhere.
 */
static __always_inline unsigned long *low_word(__u64 *offset)
{
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	return (unsigned long *)(offset + 1) - 1;
#else
	return (unsigned long *)offset;
#endif
}

static __always_inline unsigned long *read_offset(const struct kbarman_ring *ring)
{
	return low_word(&ring->header->read_offset);
}

static __always_inline unsigned long *write_offset(const struct kbarman_ring *ring)
{
	return low_word(&ring->header->write_offset);
}

static __always_inline bm_uintptr *word_at(const struct kbarman_ring *ring, unsigned long position)
{
	return (bm_uintptr *)(ring->data + (position & ring->mask));
}

static __always_inline unsigned long page_of(const struct kbarman_ring *ring, unsigned long position)
{
	return (position & ring->mask) >> KBARMAN_RING_PAGE_SHIFT;
}

/* a > b, for positions less than half the number range apart. */
static __always_inline bool after(unsigned long a, unsigned long b)
{
	return (long)(a - b) > 0;
}

void kbarman_ring_init(struct kbarman_ring *ring, void *memory, unsigned long *first,
		       unsigned long size, u32 cpu, bool overwrite)
{
	memset(ring, 0, sizeof(*ring));
	ring->header = memory;
	ring->first = first;
	ring->mask = size - 1;
	ring->cpu = cpu;
	ring->overwrite = overwrite;

	memset(ring->header, 0, sizeof(*ring->header));
	ring->header->buffer_length = size;
	memset(first, 0, (size >> KBARMAN_RING_PAGE_SHIFT) * sizeof(*first));
	/* Last: a ring with data is one that can be used. */
	smp_store_release(&ring->data, (u8 *)(ring->header + 1));
}

/* Blocks that start in front of a boundary end at `next`: note it for every one. */
static __always_inline void note_boundaries(struct kbarman_ring *ring, unsigned long position,
					    unsigned long next)
{
	unsigned long boundary;

	if (likely(!((position ^ next) >> KBARMAN_RING_PAGE_SHIFT)))
		return;
	for (boundary = ALIGN_DOWN(next, KBARMAN_RING_PAGE); after(boundary, position);
	     boundary -= KBARMAN_RING_PAGE)
		ring->first[page_of(ring, boundary)] = next;
}

/*
 * Where the oldest block may start once [.., end) is taken: the first block behind
 * the next page boundary, so that eviction comes once a page, but never a block
 * that is not published.
 */
static unsigned long evict_target(const struct kbarman_ring *ring, unsigned long end)
{
	unsigned long needed = end - kbarman_ring_size(ring);
	unsigned long commit = READ_ONCE(ring->commit);
	unsigned long target = ALIGN(needed, KBARMAN_RING_PAGE);

	if (after(target, commit))
		return commit;
	target = ring->first[page_of(ring, target)];
	return after(target, commit) || after(needed, target) ? commit : target;
}

/*
 * Make [.., end) free of blocks that a reader may still take for whole. Returns
 * false, with the reason, if that can't be.
 */
static noinline bool make_room(struct kbarman_ring *ring, unsigned long end,
			       enum kbarman_loss *reason)
{
	unsigned long size = kbarman_ring_size(ring);
	unsigned long oldest;

	for (;;) {
		oldest = READ_ONCE(*read_offset(ring));		/* [C] */
		if (!after(end - oldest, size))
			break;
		if (!ring->overwrite) {
			*reason = KBARMAN_LOST_FULL;
			return false;
		}
		if (after(end - READ_ONCE(ring->commit), size)) {
			*reason = KBARMAN_LOST_NESTED;
			return false;
		}
		/* Never a plain store: a writer that came in between may have gone
		 * further, and read_offset must not go back. */
		cmpxchg_local(read_offset(ring), oldest, evict_target(ring, end));
	}
	/*
	 * [A] For the writers that interrupt this one too: they may find `tail` good
	 * enough and write without a look at read_offset. An older tail is harmless.
	 */
	smp_wmb();
	WRITE_ONCE(ring->tail, oldest);
	return true;
}

static __always_inline void *reserve(struct kbarman_ring *ring, unsigned long length,
				     u64 *timestamp, enum kbarman_loss *reason)
{
	unsigned long size = kbarman_ring_size(ring);
	unsigned long head, pad, next;
	u64 now;

	length = ALIGN(length, WORD);
	if (unlikely(WORD + length > size / 8)) {
		*reason = KBARMAN_LOST_TOO_BIG;
		return NULL;
	}

	ring->nest++;
	barrier();
	do {
		head = READ_ONCE(ring->w);
		/* Read again on every try: whoever came in between has a later block
		 * than this try would have had, and an earlier clock. */
		now = ring_clock();
		pad = 0;
		if (unlikely((head & ring->mask) + WORD + length > size))
			pad = size - (head & ring->mask);
		next = head + pad + WORD + length;
		if (unlikely(after(next - READ_ONCE(ring->tail), size)) &&
		    !make_room(ring, next, reason)) {
			kbarman_ring_commit(ring);
			return NULL;
		}
	} while (unlikely(cmpxchg_local(&ring->w, head, next) != head));

	if (unlikely(pad)) {
		*word_at(ring, head) = BM_BLOCK_PADDING | (pad - WORD);
		note_boundaries(ring, head, head + pad);
		head += pad;
	}
	note_boundaries(ring, head, next);
	*word_at(ring, head) = length;
	*timestamp = now;
	local_inc(&ring->written);
	return word_at(ring, head) + 1;
}

void *kbarman_ring_try_reserve(struct kbarman_ring *ring, unsigned long length, u64 *timestamp)
{
	enum kbarman_loss reason;

	return reserve(ring, length, timestamp, &reason);
}

void *kbarman_ring_reserve(struct kbarman_ring *ring, unsigned long length, u64 *timestamp)
{
	enum kbarman_loss reason;
	void *record = reserve(ring, length, timestamp, &reason);

	if (unlikely(!record)) {
		local_inc(&ring->lost[reason]);
		local_inc(&ring->unreported);
	}
	return record;
}

void kbarman_ring_commit(struct kbarman_ring *ring)
{
	unsigned long before, now;

	barrier();
	if (unlikely(ring->nest > 1)) {
		ring->nest--;
		return;
	}
	before = ring->commit;
	for (;;) {
		barrier();
		now = READ_ONCE(ring->w);
		smp_store_release(write_offset(ring), now);		/* [B] */
		*low_word(&ring->header->total_written) = now;
		if (BITS_PER_LONG == 32 && unlikely(now < ring->commit))
			ring->high_words++;
		WRITE_ONCE(ring->commit, now);
		barrier();
		ring->nest = 0;
		barrier();
		if (likely(now == READ_ONCE(ring->w)))
			break;
		/* Someone reserved after `now` was read, and saw nest at 1. */
		ring->nest = 1;
	}
	if (unlikely((before ^ now) >> KBARMAN_RING_PAGE_SHIFT))
		ring_page_crossed(ring);
}

void kbarman_ring_settle(struct kbarman_ring *ring)
{
#if BITS_PER_LONG == 32
	u64 high = (u64)ring->high_words << 32;
	unsigned long start = *read_offset(ring), end = *write_offset(ring);

	ring->header->write_offset = high | end;
	ring->header->total_written = high | end;
	ring->header->read_offset = (start > end ? high - (1ULL << 32) : high) | start;
#endif
}

static void copy_out(const struct kbarman_ring *ring, u8 *to, unsigned long from,
		     unsigned long length)
{
	unsigned long start = from & ring->mask;
	unsigned long part = min(length, kbarman_ring_size(ring) - start);

	memcpy(to, ring->data + start, part);
	memcpy(to + part, ring->data, length - part);
}

long kbarman_ring_snapshot(const struct kbarman_ring *ring, void *to, unsigned long *position)
{
	unsigned long start, end, oldest;
	int tries;

	for (tries = 0; tries < SNAPSHOT_TRIES; tries++) {
		end = smp_load_acquire(write_offset(ring));		/* [B] */
		start = smp_load_acquire(read_offset(ring));
		*position = start;
		if (start == end)
			return 0;
		if (after(start, end))
			continue;
		copy_out(ring, to, start, end - start);
		smp_rmb();						/* [A] */
		oldest = READ_ONCE(*read_offset(ring));
		if (after(oldest, end))
			continue;
		if (after(oldest, start)) {
			memmove(to, (u8 *)to + (oldest - start), end - oldest);
			*position = oldest;
		}
		return end - *position;
	}
	return -EAGAIN;
}

/*
 * Walk the blocks in [from, to). Returns where the walk came to, which is `to` if
 * both are boundaries and nothing was overwritten meanwhile, and the records seen.
 */
static unsigned long walk(const struct kbarman_ring *ring, unsigned long from, unsigned long to,
			  unsigned long *records)
{
	bm_uintptr word;

	for (*records = 0; after(to, from); from += WORD + (word & ~BM_BLOCK_PADDING)) {
		word = READ_ONCE(*word_at(ring, from));
		if ((word & ~BM_BLOCK_PADDING) > kbarman_ring_size(ring) || word % WORD)
			return from;
		if (!(word & BM_BLOCK_PADDING))
			++*records;
	}
	return from;
}

int kbarman_ring_consume(struct kbarman_ring *ring, u64 position)
{
	unsigned long from = READ_ONCE(*read_offset(ring));
	unsigned long to = smp_load_acquire(write_offset(ring));	/* [B] */
	unsigned long target = (unsigned long)position;
	unsigned long records;

	if (ring->overwrite || after(target, to) || after(from, target))
		return -EINVAL;
	if (walk(ring, from, target, &records) != target)
		return -EINVAL;
	smp_store_release(read_offset(ring), target);			/* [C] */
	return 0;
}

long kbarman_ring_count(const struct kbarman_ring *ring)
{
	unsigned long start, end, records;
	int tries;

	for (tries = 0; tries < SNAPSHOT_TRIES; tries++) {
		end = smp_load_acquire(write_offset(ring));		/* [B] */
		start = smp_load_acquire(read_offset(ring));
		if (after(start, end))
			continue;
		if (walk(ring, start, end, &records) != end)
			continue;
		smp_rmb();						/* [A] */
		if (READ_ONCE(*read_offset(ring)) == start)
			return records;
	}
	return -EAGAIN;
}

/* The timestamp of the first record in [from, to), whole if nobody overwrote it. */
static u64 first_timestamp(const struct kbarman_ring *ring, unsigned long from, unsigned long to)
{
	const struct bm_protocol_record_header *record;
	bm_uintptr word = READ_ONCE(*word_at(ring, from));

	/* Padding goes up to the end of the ring, so there is never more than one. */
	if (word & BM_BLOCK_PADDING)
		from = ALIGN(from + 1, kbarman_ring_size(ring));
	if (!after(to, from))
		return U64_MAX;
	record = (const void *)(word_at(ring, from) + 1);
	return record->timestamp;
}

u64 kbarman_ring_oldest(const struct kbarman_ring *ring)
{
	unsigned long start, end;
	u64 timestamp;
	int tries;

	for (tries = 0; tries < SNAPSHOT_TRIES; tries++) {
		end = smp_load_acquire(write_offset(ring));		/* [B] */
		start = smp_load_acquire(read_offset(ring));
		if (start == end)
			return U64_MAX;
		if (after(start, end))
			continue;
		timestamp = first_timestamp(ring, start, end);
		smp_rmb();						/* [A] */
		if (READ_ONCE(*read_offset(ring)) == start)
			return timestamp;
	}
	return 0;
}

unsigned long kbarman_ring_fill(const struct kbarman_ring *ring)
{
	return READ_ONCE(*write_offset(ring)) - READ_ONCE(*read_offset(ring));
}
