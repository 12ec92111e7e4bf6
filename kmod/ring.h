/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The ring of one CPU: variable-length blocks in a power of two of bytes, in the
 * form a Barman v2 circular store has, so that the memory itself is the capture.
 *
 * Writers run on the owning CPU only, but nest: task, softirq, irq, NMI. Readers
 * are anyone; they never hold a writer up and can always tell whether what they
 * copied was overwritten meanwhile (kbarman_ring_snapshot()).
 *
 *	between reserve and commit: preemption is off, no sleeping, no way out
 *	without kbarman_ring_commit(), no fault but by _nofault helpers
 *
 * Positions (w, commit, limit, the offsets in the header) count bytes since start,
 * modulo 2^BITS_PER_LONG, and are reduced with `mask` on use.
 */
#ifndef KBARMAN_RING_H
#define KBARMAN_RING_H

#include "ring_env.h"
#include "uapi/barman_v2.h"
#include "uapi/kbarman.h"

#define KBARMAN_RING_PAGE_SHIFT	12
#define KBARMAN_RING_PAGE	(1UL << KBARMAN_RING_PAGE_SHIFT)
#define KBARMAN_RING_MIN	(64UL << 10)
#define KBARMAN_RING_MAX	(1UL << 30)

/* Of one page of the ring, by the newest round that came there. */
struct kbarman_ring_page {
	unsigned long first;	/* where the first block at or behind its start begins */
	unsigned long end;	/* of what was published when a writer came out of it: behind
				 * its start, and no later than its end */
	unsigned long records;	/* written in front of `end`, since the ring's init */
};

struct kbarman_ring {
	/* What the short way needs is in one cache line. Constant from init on: */
	u8 *data;		/* mapped */
	unsigned long mask;	/* size - 1 */
	u32 cpu;

	/* The owning CPU's; every writer that interrupts another one leaves them
	 * as that one can go on with. */
	unsigned int nest;	/* writers between reserve and commit */
	unsigned long w;	/* reserved up to here; only ever moved by cmpxchg */
	unsigned long commit;	/* published up to here */
	unsigned long short_limit; /* neither behind limit nor at the end of its page */

	/* The owning CPU's, counted with interrupt-safe adds; read by anyone. */
	local_t written;

	local_t lost[KBARMAN_LOST_REASONS];
	local_t unreported;	/* losses that the ring itself does not tell of yet */

	/* The owning CPU's, as those above. */
	unsigned long limit;	/* no block ends behind it: no later than the end of
				 * what read_offset leaves free, which it is set to
				 * when it does not suffice */
	unsigned int high_words; /* what does not fit into commit on 32 bits */

	/* Constant from init on. */
	bool overwrite;
	struct bm_datastore_header_data *header;	/* mapped, in front of data */
	struct kbarman_ring_page *pages;	/* [size >> KBARMAN_RING_PAGE_SHIFT] */

	/* Of kbarman_ring_overwritten() alone. */
	unsigned long overwritten;
} __aligned(64);

/*
 * @memory: struct bm_datastore_header_data and @size bytes behind it, zeroed;
 * @pages: @size >> KBARMAN_RING_PAGE_SHIFT elements; both stay the caller's.
 * @size is a power of two from KBARMAN_RING_MIN to KBARMAN_RING_MAX. No writer and
 * no reader may be active.
 */
void kbarman_ring_init(struct kbarman_ring *ring, void *memory, struct kbarman_ring_page *pages,
		       unsigned long size, u32 cpu, bool overwrite);

/* What has been counted: in a long, which grows beyond its sign where it has 32 bits. */
static inline u64 kbarman_counted(const local_t *counter)
{
	return (unsigned long)local_read(counter);
}

/* It was initialised, whoever did it. */
static __always_inline bool kbarman_ring_ready(const struct kbarman_ring *ring)
{
	return smp_load_acquire(&ring->data);	/* pairs with kbarman_ring_init() */
}

/*
 * The low word of an offset in the header, the only part that is live on a 32-bit
 * machine: an unsigned long can be stored and exchanged at once everywhere.
 */
static __always_inline unsigned long *kbarman_ring_low_word(__u64 *offset)
{
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	return (unsigned long *)(offset + 1) - 1;
#else
	return (unsigned long *)offset;
#endif
}

static __always_inline bm_uintptr *kbarman_ring_word(const struct kbarman_ring *ring,
						     unsigned long position)
{
	return (bm_uintptr *)(ring->data + (position & ring->mask));
}

/* a > b, for positions less than half the number range apart. The sign is a flag. */
static __always_inline bool kbarman_ring_after(unsigned long a, unsigned long b)
{
	return (long)(b - a) < 0;
}

/* The positions lie in different pages of the ring. */
static __always_inline bool kbarman_ring_crosses(unsigned long from, unsigned long to)
{
	return (from ^ to) >> KBARMAN_RING_PAGE_SHIFT;
}

/* Let readers have what is in front of @end, and go. The outermost writer only. */
static __always_inline void kbarman_ring_store_end(struct kbarman_ring *ring, unsigned long end)
{
	/* ring->header, but for one load less. */
	struct bm_datastore_header_data *header = (void *)(ring->data - sizeof(*header));

	smp_store_release(kbarman_ring_low_word(&header->write_offset), end);	/* [B] */
	WRITE_ONCE(*kbarman_ring_low_word(&header->total_written), end);
	if (BITS_PER_LONG == 32 && end < ring->commit)
		ring->high_words++;
	WRITE_ONCE(ring->commit, end);
	barrier();
	WRITE_ONCE(ring->nest, 0);
	barrier();
}

/* Where a record goes, NULL if there is no room for it, and when it is. */
struct kbarman_slot {
	void *record;
	u64 timestamp;
	unsigned long end;	/* of the block: the short way's only */
};

/*
 * Room for a record of @length bytes, a multiple of the word; every one of them is the
 * caller's to write. The clock is read so that timestamps never go back from one block
 * to the next. If there is no room, that has been counted. kbarman_ring_commit()
 * follows if and only if there is.
 * Context: owning CPU, preemption off, any level up to NMI.
 */
struct kbarman_slot kbarman_ring_reserve(struct kbarman_ring *ring, unsigned long length);

/* The same, but a failure is not counted: for records about losses. */
struct kbarman_slot kbarman_ring_try_reserve(struct kbarman_ring *ring, unsigned long length);

/*
 * Count a record that does not even ask for room. The ring does not tell of it before
 * kbarman_ring_owe(). Context: as kbarman_ring_reserve().
 */
void kbarman_ring_lose(struct kbarman_ring *ring, enum kbarman_loss reason);

/*
 * @lost records more are to be reported: in front of the next record, which can't go the
 * short way. Context: as kbarman_ring_reserve().
 */
void kbarman_ring_report_later(struct kbarman_ring *ring, long lost);

/* The next record is preceded by one that tells of @lost ones more. Context: as above. */
void kbarman_ring_owe(struct kbarman_ring *ring, unsigned long lost);

/* Publish; for a nested writer, when the outermost one commits. */
void kbarman_ring_commit(struct kbarman_ring *ring);

/*
 * The short way, for the writer that interrupts no other, is not interrupted itself, and
 * stays within a page: nearly all of them. If true, kbarman_ring_commit_short() follows;
 * else kbarman_ring_reserve(), as if this had not been called. A ring of zeros, which was
 * not initialised yet, may be asked as well: it has no short way.
 */
static __always_inline bool kbarman_ring_reserve_short(struct kbarman_ring *ring,
						       unsigned long length,
						       struct kbarman_slot *slot)
{
	unsigned long head, end;
	bm_uintptr *word;
	u64 now;

	/* All that is reserved is published, or the exchange will fail. */
	head = READ_ONCE(ring->commit);
	if (unlikely(READ_ONCE(ring->nest)))
		return false;
	/* Behind `head`: whoever comes in between has a later clock and this block's
	 * place, so the exchange fails, and the clock is read again. */
	now = ring_clock();
	end = head + sizeof(*word) + length;
	/* A block within one page needs no padding, is no page's last, and is not too
	 * big: an eighth of the smallest ring is more than a page. */
	if (unlikely(kbarman_ring_after(end, READ_ONCE(ring->short_limit))))
		return false;
	/* Who came in before this was the outermost writer, and has published. */
	WRITE_ONCE(ring->nest, 1);
	barrier();
	if (unlikely(cmpxchg_local(&ring->w, head, end) != head)) {
		WRITE_ONCE(ring->nest, 0);
		return false;
	}
	local_inc(&ring->written);
	word = kbarman_ring_word(ring, head);
	*word = length;
	*slot = (struct kbarman_slot) { .record = word + 1, .timestamp = now, .end = end };
	return true;
}

/*
 * Publish until nobody has come in since, and tell of the pages that are full. @before:
 * what was published before. The outermost writer only.
 */
void kbarman_ring_publish(struct kbarman_ring *ring, unsigned long before);

/* @end: of the slot. */
static __always_inline void kbarman_ring_commit_short(struct kbarman_ring *ring, unsigned long end)
{
	barrier();
	kbarman_ring_store_end(ring, end);
	if (unlikely(end != READ_ONCE(ring->w)))
		kbarman_ring_publish(ring, end);
}

/*
 * Complete the offsets in the header where a word is too short for them: they are
 * 64 bits wide then. No writer may be active.
 */
void kbarman_ring_settle(struct kbarman_ring *ring);

/*
 * Copy what the ring holds to @to, which has room for its size, in order. Returns
 * the number of bytes, whole blocks, and in @position the position of the first;
 * -EAGAIN if the writer was faster sixteen times in a row.
 * Context: any CPU, any time.
 */
long kbarman_ring_snapshot(const struct kbarman_ring *ring, void *to, unsigned long *position);

/*
 * Give back everything before @position, in stream mode. -EINVAL if that is not a
 * block boundary between read_offset and write_offset. One caller at a time.
 */
int kbarman_ring_consume(struct kbarman_ring *ring, u64 position);

/*
 * How many records were written in front of read_offset, so are not in the ring any more: in
 * overwrite mode, those that were overwritten. Exact at some moment of the call, whatever the
 * writer does meanwhile; it looks at a page or two of the ring, not at all of it. If the writer
 * was faster sixteen times in a row, it is what an earlier call found, so never too many.
 * One caller at a time.
 */
unsigned long kbarman_ring_overwritten(struct kbarman_ring *ring);

/*
 * One of the oldest @blocks is a record of @type. False if a writer came in that
 * overwrote them. Context: the owning CPU, preemption off.
 */
bool kbarman_ring_holds(const struct kbarman_ring *ring, u32 type, unsigned int blocks);

/*
 * What there is now: from @start on, a block boundary, to the position that is returned.
 * Context: any CPU, any time.
 */
unsigned long kbarman_ring_bounds(const struct kbarman_ring *ring, unsigned long *start);

/*
 * Copy what stands at @position, a block boundary, at most @size bytes and up to @end, of
 * kbarman_ring_bounds(), to @to. Returns how many; the last block may be cut off. 0 if it was
 * overwritten: @position is then that of the oldest block, which may be behind @end.
 */
unsigned long kbarman_ring_peek(const struct kbarman_ring *ring, unsigned long *position,
				unsigned long end, void *to, unsigned long size);

/*
 * Overwrite mode: drop the records in front of the page of the ring that @position is in, and
 * the block that reaches into that page. They count as overwritten. Records behind the start of
 * the newest page stay. @position is any; if what it means is gone already, nothing happens. A
 * stream stays as it is.
 * Context: the owning CPU, preemption off, any level up to NMI; or any CPU while the owning one
 * is offline and can't come back.
 */
void kbarman_ring_drop(struct kbarman_ring *ring, unsigned long position);

/* The number of bytes between read_offset and write_offset. Context: any. */
unsigned long kbarman_ring_fill(const struct kbarman_ring *ring);

static inline unsigned long kbarman_ring_size(const struct kbarman_ring *ring)
{
	return ring->mask + 1;
}

#endif /* KBARMAN_RING_H */
