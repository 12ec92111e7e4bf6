/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * ring/: from a fact to bytes of a CPU's memory. Timestamps (clock.h), records (record.h), waking
 * who waits for them (wake.h), and here the ring of one CPU: variable-length blocks in a power of
 * two of bytes, in the form that a Barman v2 circular store has, so that the memory is the capture.
 *
 * Writers run on the owning CPU only, but nest: task, softirq, irq, NMI. Readers
 * are anyone; they never hold a writer up and can always tell whether what they
 * copied was overwritten meanwhile (uapi/kbarman.h).
 *
 *	between reserve and commit: preemption is off. The writer does not sleep, does
 *	not fault but in _nofault helpers, and always calls kbarman_ring_commit().
 *
 * Who publishes. The outermost writer is the one whose block begins at `commit`: everything in
 * front of it was published when it reserved. As long as it has not published, `w` is not `commit`,
 * and each writer that comes in is nested: its block begins after `commit`, and the outermost writer
 * publishes it. So `commit` tells each writer which one it is, when it reserves and when it commits.
 * A writer that has not reserved yet, or finds no room, leaves no trace: those that interrupt it
 * are outermost themselves.
 *
 * The clock. A writer loads where its block would begin, then reads the clock, then exchanges `w`.
 * A writer that comes in between and reserves has a later time, and the exchange fails. A CPU may
 * read the clock before it has done the load. That moves no interrupt: one that comes behind the
 * load and before the clock discards what the CPU read ahead, and one that comes behind both is
 * later than both. Two writers of one CPU, one behind the other, read the clock in their order.
 * Linux relies on that in sched_clock(). On arm64 an ISB orders the clock behind all in front of it.
 *
 * Positions (w, commit, limit, the offsets in the header) count bytes since start,
 * modulo 2^BITS_PER_LONG, and are reduced with `mask` on use. They are compared by their
 * difference, which has to be less than half of the range:
 *
 *	read_offset <= commit <= w <= read_offset + size
 *	`limit` and `short_limit` are at most `size` in front of `w`. A writer that was interrupted
 *	may store what is older by as much as others wrote meanwhile: too low, and whoever finds
 *	it too low renews it. On every page change one of `short_limit` and `called_limit` is
 *	set to at most `commit`, which disables that short path
 *	a block has at most an eighth of `size`, which is at most a quarter of the range
 *
 * A reader loads write_offset first, as `end`, and read_offset then, as `start`. Either start is
 * behind end, because the writer has gone on, or end - start <= size: what the writer of `end`
 * evicted is in front of `end` in the order of its stores.
 */
#ifndef KBARMAN_RING_H
#define KBARMAN_RING_H

#include "ring/ring_env.h"
#include "uapi/barman_v2.h"
#include "uapi/kbarman.h"

#define KBARMAN_RING_PAGE_SHIFT	12
#define KBARMAN_RING_PAGE	(1UL << KBARMAN_RING_PAGE_SHIFT)
#define KBARMAN_RING_MIN	(64UL << 10)
#define KBARMAN_RING_MAX	(1UL << 30)

/* One page of the ring. The newest round of the ring that reached the page filled this in. */
struct kbarman_ring_page {
	unsigned long first;	/* the first block at or behind the page's start begins here. Valid if
				 * the page's start is behind read_offset and not behind commit.
				 * Otherwise it may be an earlier round's, or one that is being
				 * written: whoever reads it compares it with both */
	unsigned long end;	/* a writer that came from another page published up to here:
				 * behind this page's start, and not behind its end */
	unsigned long records;	/* written in front of `end`, since the ring's init */
};

/* Losses that the ring itself does not tell of yet. */
struct kbarman_owed {
	local_t records;
	u64 since;		/* time of the first of them, if there are any */
};

struct kbarman_wake;

struct kbarman_ring {
	/* The short way needs one cache line. Constant from init on: */
	u8 *data;		/* mapped */
	unsigned long mask;	/* size - 1 */
	u64 stamp;		/* the caller's: the same in all records (record.h) */

	/* The owning CPU's. A writer that interrupts another one leaves them so that
	 * the other one can go on. */
	unsigned long w;	/* reserved up to here; only ever moved by cmpxchg */
	unsigned long commit;	/* published up to here */
	unsigned long short_limit; /* blocks of the short way end here at the latest: not
				 * behind limit, and in front of a page's end. At or in front of
				 * `commit`: the short way is closed */
	unsigned long written;	/* by outermost writers, of which there is one at a time */

	/* The owning CPU's, counted with interrupt-safe adds; read by anyone. */
	local_t nested;		/* written by others */
	local_t lost[KBARMAN_LOST_REASONS];
	struct kbarman_owed owed[KBARMAN_LOST_REASONS];
	local_t owing;		/* the sum of their records; for a moment more, never less */
	unsigned long called_limit; /* as short_limit, where the clock has to be called. One of
				 * the two is closed */

	/* The owning CPU's, as those above. */
	unsigned long limit;	/* blocks end here at the latest. Never behind read_offset +
				 * size; set to that when a block would end behind limit */
	unsigned int high_words; /* of commit: bits 32 to 63, where a long has 32 */
	bool closed;		/* nothing is written: no recording has begun, or it is over */

	/* Constant from init on. */
	bool overwrite;
	struct bm_datastore_header_data *header;	/* mapped, in front of data */
	struct kbarman_ring_page *pages;	/* [size >> KBARMAN_RING_PAGE_SHIFT] */
	struct kbarman_wake *wake;	/* told of pages that became full: ring_env.h */
	u32 cpu;

	/* Of kbarman_ring_overwritten() alone. */
	unsigned long overwritten;
	unsigned long oldest;	/* offset that so many records were in front of */
} __aligned(64);

/*
 * @memory: struct bm_datastore_header_data and @size bytes behind it, zeroed;
 * @pages: @size >> KBARMAN_RING_PAGE_SHIFT elements; both stay the caller's. The caller has set
 * ->wake, ->stamp and ->closed.
 * @size is a power of two from KBARMAN_RING_MIN to KBARMAN_RING_MAX. No writer and
 * no reader may be active.
 */
void kbarman_ring_init(struct kbarman_ring *ring, void *memory, struct kbarman_ring_page *pages,
		       unsigned long size, u32 cpu, bool overwrite);

/*
 * Begin the ring again, which is closed. The table of pages is cleared first, which takes long and
 * may be done anywhere while no other reader than the caller looks at the ring. Context of the second
 * one: the owning CPU, interrupts off, any writer may be interrupted; or any CPU while the owning one
 * is offline and can't come back.
 */
void kbarman_ring_forget_pages(struct kbarman_ring *ring);
void kbarman_ring_empty(struct kbarman_ring *ring);

/* The value of a counter. A long of 32 bits is counted beyond its sign. */
static inline u64 kbarman_counted(const local_t *counter)
{
	return (unsigned long)local_read(counter);
}

/* How many records are written, those included that are overwritten since. */
static inline unsigned long kbarman_ring_written(const struct kbarman_ring *ring)
{
	return READ_ONCE(ring->written) + (unsigned long)local_read(&ring->nested);
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

/*
 * Readers may have all in front of @end. @data is ring->data. From then on the caller is no writer
 * any more. Context: the outermost writer.
 */
static __always_inline void kbarman_ring_store_end(struct kbarman_ring *ring, u8 *data,
						   unsigned long end)
{
	/* The same as ring->header, without a load. */
	struct bm_datastore_header_data *header = (void *)(data - sizeof(*header));

	smp_store_release(kbarman_ring_low_word(&header->write_offset), end);	/* [B] */
	if (BITS_PER_LONG == 32 && end < ring->commit)
		ring->high_words++;
	WRITE_ONCE(ring->commit, end);
	barrier();
}

/* The place and the time of a record. */
struct kbarman_slot {
	void *record;		/* NULL: there is no room */
	u64 timestamp;
	unsigned long begin;	/* of what is reserved, padding included */
};

/* The same, of the short way. */
struct kbarman_short {
	struct kbarman_slot slot;
	unsigned long end;	/* of the block */
	u8 *data;		/* the ring's */
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
 * kbarman_ring_owe(). False: the ring is closed, and nothing is lost. Context: as
 * kbarman_ring_reserve().
 */
bool kbarman_ring_lose(struct kbarman_ring *ring, enum kbarman_loss reason);

/*
 * @lost records more are to be reported, in front of the next record, of which the first was lost
 * at @since. So the next record does not go the short way. Context: as kbarman_ring_reserve().
 */
void kbarman_ring_owe(struct kbarman_ring *ring, enum kbarman_loss reason, long lost, u64 since);

/* True: losses are to be reported. It may be true a moment too long. Context: owning CPU. */
static __always_inline bool kbarman_ring_is_owing(const struct kbarman_ring *ring)
{
	return local_read(&ring->owing);
}

/* The reason whose losses are to be reported first; KBARMAN_LOST_REASONS: there are none. */
enum kbarman_loss kbarman_ring_owes(const struct kbarman_ring *ring);

/*
 * How many records are to be reported, which the caller does then. @since: when the first was lost,
 * or a little earlier, if an interrupt came in between. Context: as kbarman_ring_reserve().
 */
long kbarman_ring_take_owed(struct kbarman_ring *ring, enum kbarman_loss reason, u64 *since);

/*
 * Publish the record, @begin: of the slot. A nested writer's is published when the outermost one
 * commits.
 */
void kbarman_ring_commit(struct kbarman_ring *ring, unsigned long begin);

/* The short way; @called: the clock has to be called. */
static __always_inline bool kbarman_ring_reserve_within(struct kbarman_ring *ring,
							unsigned long length, bool called,
							struct kbarman_short *it)
{
	unsigned long head = READ_ONCE(ring->commit);
	unsigned long end = head + sizeof(bm_uintptr) + length, limit;
	bm_uintptr *word;
	u64 now;

	/* Everything else is read behind `head`: it is at least as new. */
	barrier();
	/* Who changes it meanwhile is an interrupt that writes, and moves `w`, too. */
	limit = data_race(called ? ring->called_limit : ring->short_limit);
	/* A block within one page needs no padding, is no page's last, and is not too
	 * big: an eighth of the smallest ring is more than a page. */
	if (unlikely(kbarman_ring_after(end, limit)))
		return false;
	now = called ? ring_clock() : ring_counter();
	/* If something is reserved that is not published, or a writer came in between, this fails.
	 * So whoever goes on is the outermost writer. */
	if (unlikely(!ring_try_cmpxchg(&ring->w, head, end)))
		return false;
	/* The outermost writers' alone, so no other one changes it meanwhile. */
	data_race(ring->written++);
	it->data = ring->data;
	word = (bm_uintptr *)(it->data + (head & ring->mask));
	*word = length;
	it->slot = (struct kbarman_slot) { .record = word + 1, .timestamp = now, .begin = head };
	it->end = end;
	return true;
}

/*
 * The short way. Nearly every writer interrupts no other, is not interrupted, and stays within
 * a page: those can go it. True: the caller calls kbarman_ring_commit_short() later. False: the
 * caller calls kbarman_ring_reserve(), as if it had not called this. @ring may be all zeros, as
 * it is before its init: such a ring has no short way. Nor has one whose clock is not the counter
 * alone (ring_clock_is_called()): it has another one, kbarman_ring_reserve_called().
 */
static __always_inline bool kbarman_ring_reserve_short(struct kbarman_ring *ring,
						       unsigned long length,
						       struct kbarman_short *it)
{
	return kbarman_ring_reserve_within(ring, length, false, it);
}

/* The same for the other rings. */
static __always_inline bool kbarman_ring_reserve_called(struct kbarman_ring *ring,
							unsigned long length,
							struct kbarman_short *it)
{
	return kbarman_ring_reserve_within(ring, length, true, it);
}

/*
 * Publish all that is reserved, with what other writers reserve meanwhile, and tell of pages
 * that became full. The caller has published everything in front of @before, or is the outermost
 * writer, and its block begins there.
 */
void kbarman_ring_publish(struct kbarman_ring *ring, unsigned long before);

static __always_inline void kbarman_ring_commit_short(struct kbarman_ring *ring,
						      const struct kbarman_short *it)
{
	barrier();
	kbarman_ring_store_end(ring, it->data, it->end);
	if (unlikely(it->end != data_race(ring->w)))
		kbarman_ring_publish(ring, it->end);
}

/*
 * The clock is not the counter alone any more: no record goes the short way. Context: the owning
 * CPU, preemption off; or any CPU while the owning one can't write.
 */
void kbarman_ring_close_short(struct kbarman_ring *ring);

/*
 * Write nothing from now on, or write again. What a closed ring does not take is not lost: it is no
 * part of the recording. No record has a time behind the close, though a writer that the close
 * interrupts may write one yet. Context: the owning CPU, interrupts off; kbarman_ring_shut(): any
 * CPU while the owning one can't write.
 */
void kbarman_ring_open(struct kbarman_ring *ring);
void kbarman_ring_close(struct kbarman_ring *ring);
void kbarman_ring_shut(struct kbarman_ring *ring);

/*
 * Complete the header. Its offsets are 64 bits wide; where a long has 32, only their low halves are
 * live. total_written is stored once a page, and here. No writer may be active.
 */
void kbarman_ring_settle(struct kbarman_ring *ring);

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

/* Bytes between read_offset and write_offset of the ring whose memory is at @header. Context: any. */
unsigned long kbarman_ring_fill(struct bm_datastore_header_data *header);

static inline unsigned long kbarman_ring_size(const struct kbarman_ring *ring)
{
	return ring->mask + 1;
}

/* Whether the ring keeps the newest records, and drops others. Context: any; the ring is ready. */
static inline bool kbarman_ring_overwrites(const struct kbarman_ring *ring)
{
	return ring->overwrite;
}

#endif /* KBARMAN_RING_H */
