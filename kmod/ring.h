/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The ring of one CPU: variable-length blocks in a power of two of bytes, in the
 * form a Barman v2 circular store has, so that the memory itself is the capture.
 *
 * Writers run on the owning CPU only, but nest: task, softirq, irq, NMI. Readers
 * are anyone; they never hold a writer up and can always tell whether what they
 * copied was overwritten meanwhile (kbarman_ring_snapshot()).
 *
 *	between reserve and commit: preemption is off. The writer does not sleep, does
 *	not fault but in _nofault helpers, and always calls kbarman_ring_commit().
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

/* One page of the ring. The newest round of the ring that reached the page filled this in. */
struct kbarman_ring_page {
	unsigned long first;	/* the first block at or behind the page's start begins here */
	unsigned long end;	/* a writer that came from another page published up to here:
				 * behind this page's start, and not behind its end */
	unsigned long records;	/* written in front of `end`, since the ring's init */
};

struct kbarman_wake;

struct kbarman_ring {
	/* The short way needs one cache line. Constant from init on: */
	u8 *data;		/* mapped */
	unsigned long mask;	/* size - 1 */
	u32 cpu;

	/* The owning CPU's. A writer that interrupts another one leaves them so that
	 * the other one can go on. */
	unsigned int nest;	/* writers between reserve and commit */
	unsigned long w;	/* reserved up to here; only ever moved by cmpxchg */
	unsigned long commit;	/* published up to here */
	unsigned long short_limit; /* blocks of the short way end here at the latest: not
				 * behind limit, and in front of a page's end */

	/* The owning CPU's, counted with interrupt-safe adds; read by anyone. */
	local_t written;

	local_t lost[KBARMAN_LOST_REASONS];
	local_t unreported;	/* losses that the ring itself does not tell of yet */

	/* The owning CPU's, as those above. */
	unsigned long limit;	/* blocks end here at the latest. Never behind read_offset +
				 * size; set to that when a block would end behind limit */
	unsigned int high_words; /* of commit: bits 32 to 63, where a long has 32 */

	/* Constant from init on. */
	bool overwrite;
	struct bm_datastore_header_data *header;	/* mapped, in front of data */
	struct kbarman_ring_page *pages;	/* [size >> KBARMAN_RING_PAGE_SHIFT] */
	struct kbarman_wake *wake;	/* told of pages that became full: ring_env.h */

	/* Of kbarman_ring_overwritten() alone. */
	unsigned long overwritten;
} __aligned(64);

/*
 * @memory: struct bm_datastore_header_data and @size bytes behind it, zeroed;
 * @pages: @size >> KBARMAN_RING_PAGE_SHIFT elements; both stay the caller's. The caller has set
 * ->wake.
 * @size is a power of two from KBARMAN_RING_MIN to KBARMAN_RING_MAX. No writer and
 * no reader may be active.
 */
void kbarman_ring_init(struct kbarman_ring *ring, void *memory, struct kbarman_ring_page *pages,
		       unsigned long size, u32 cpu, bool overwrite);

/* The value of a counter. A long of 32 bits is counted beyond its sign. */
static inline u64 kbarman_counted(const local_t *counter)
{
	return (unsigned long)local_read(counter);
}

/* Some CPU has called kbarman_ring_init() for it. */
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

/* Readers may have all in front of @end. The writer is no writer any more. The outermost only. */
static __always_inline void kbarman_ring_store_end(struct kbarman_ring *ring, unsigned long end)
{
	/* The same as ring->header, without a load. */
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

/* The place and the time of a record. */
struct kbarman_slot {
	void *record;		/* NULL: there is no room */
	u64 timestamp;
	unsigned long end;	/* of the block; set by the short way only */
};

/*
 * Room for a record of @length bytes, a multiple of the word. The caller writes every byte.
 * Timestamps never go back from one block to the next. If there is room, the caller calls
 * kbarman_ring_commit() later. If there is none, the loss is counted, and the caller does not.
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
 * @lost records more are to be reported, in front of the next record. So the next record does
 * not go the short way. Context: as kbarman_ring_reserve().
 */
void kbarman_ring_report_later(struct kbarman_ring *ring, long lost);

/* The same, from outside of a writer. Context: as above. */
void kbarman_ring_owe(struct kbarman_ring *ring, unsigned long lost);

/* Publish the record. A nested writer's is published when the outermost one commits. */
void kbarman_ring_commit(struct kbarman_ring *ring);

/*
 * The short way. Nearly every writer interrupts no other, is not interrupted, and stays within
 * a page: those can go it. True: the caller calls kbarman_ring_commit_short() later. False: the
 * caller calls kbarman_ring_reserve(), as if it had not called this. @ring may be all zeros, as
 * it is before its init: such a ring has no short way.
 */
static __always_inline bool kbarman_ring_reserve_short(struct kbarman_ring *ring,
						       unsigned long length,
						       struct kbarman_slot *slot)
{
	unsigned long head, end;
	bm_uintptr *word;
	u64 now;

	/* If something is reserved that is not published, the exchange will fail. */
	head = READ_ONCE(ring->commit);
	if (unlikely(READ_ONCE(ring->nest)))
		return false;
	/* The clock is read behind `head`. A writer that comes in between has a later time
	 * and takes the place: the exchange fails, and the long way reads the clock again. */
	now = ring_clock();
	end = head + sizeof(*word) + length;
	/* A block within one page needs no padding, is no page's last, and is not too
	 * big: an eighth of the smallest ring is more than a page. */
	if (unlikely(kbarman_ring_after(end, READ_ONCE(ring->short_limit))))
		return false;
	/* A writer that came in before this was an outermost one: it has published. */
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
 * Publish all that is reserved, with what other writers reserve meanwhile, and tell of pages
 * that became full. Everything in front of @before was published before. The outermost writer
 * only.
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
 * Complete the offsets in the header. They are 64 bits wide; where a long has 32, only their
 * low halves are live. No writer may be active.
 */
void kbarman_ring_settle(struct kbarman_ring *ring);

/*
 * Copy all blocks of the ring to @to, in order. @to has room for as many bytes as the ring.
 * Returns the number of bytes, and in @position where the first block stood; -EAGAIN if the
 * writer was faster sixteen times in a row.
 * Context: any CPU, any time.
 */
long kbarman_ring_snapshot(const struct kbarman_ring *ring, void *to, unsigned long *position);

/*
 * Give back everything before @position, in stream mode. -EINVAL if that is not a
 * block boundary between read_offset and write_offset. One caller at a time.
 */
int kbarman_ring_consume(struct kbarman_ring *ring, u64 position);

/*
 * How many records were written in front of read_offset: in overwrite mode, how many were
 * overwritten or dropped. The number is exact at some moment of the call, whatever the writer
 * does meanwhile. If the writer was faster sixteen times in a row, it is the number of an earlier
 * call, which is never too high. The call looks at a page or two of the ring. One caller at a
 * time.
 */
unsigned long kbarman_ring_overwritten(struct kbarman_ring *ring);

/*
 * One of the oldest @blocks is a record of @type. False as well if a writer interrupts and
 * overwrites them. Context: the owning CPU, preemption off.
 */
bool kbarman_ring_holds(const struct kbarman_ring *ring, u32 type, unsigned int blocks);

/*
 * The bounds of what the ring holds now: @start is the first block's position, and the end is
 * returned. Context: any CPU, any time.
 */
unsigned long kbarman_ring_bounds(const struct kbarman_ring *ring, unsigned long *start);

/*
 * Copy blocks from @position on to @to: at most @size bytes, and none behind @end, which
 * kbarman_ring_bounds() returned. @position is a block's. Returns how many bytes; the last block
 * may be cut off. 0: the blocks are overwritten, and @position is now the oldest block's, which
 * may be behind @end.
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
