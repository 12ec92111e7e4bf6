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
 * Positions (w, commit, tail, the offsets in the header) count bytes since start,
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

struct kbarman_ring {
	/* Constant from init on. */
	struct bm_datastore_header_data *header;	/* mapped, in front of data */
	u8 *data;					/* mapped */
	unsigned long *first;	/* [size >> KBARMAN_RING_PAGE_SHIFT]: where the first
				 * block at or behind each boundary starts */
	unsigned long mask;	/* size - 1 */
	u32 cpu;
	bool overwrite;

	/* The owning CPU's; every writer that interrupts another one leaves them
	 * as that one can go on with. */
	unsigned int nest;	/* writers between reserve and commit */
	unsigned long w;	/* reserved up to here; only ever moved by cmpxchg */
	unsigned long commit;	/* published up to here */
	unsigned long tail;	/* no later than read_offset: a bound that is cheap to
				 * test, renewed when it does not suffice */
	unsigned int high_words; /* what does not fit into commit on 32 bits */

	/* The owning CPU's, counted with interrupt-safe adds; read by anyone. */
	local_t written;
	local_t lost[KBARMAN_LOST_REASONS];
	local_t unreported;	/* losses that the ring itself does not tell of yet */
};

/*
 * @memory: struct bm_datastore_header_data and @size bytes behind it, zeroed;
 * @first: @size >> KBARMAN_RING_PAGE_SHIFT elements; both stay the caller's.
 * @size is a power of two from KBARMAN_RING_MIN to KBARMAN_RING_MAX. No writer and
 * no reader may be active.
 */
void kbarman_ring_init(struct kbarman_ring *ring, void *memory, unsigned long *first,
		       unsigned long size, u32 cpu, bool overwrite);

/*
 * Room for a record of @length bytes. Returns where it goes, and in @timestamp the
 * clock, read so that timestamps never go back from one block to the next; NULL if
 * there is no room, which has then been counted. Every byte up to the next word
 * boundary is the caller's to write. kbarman_ring_commit() follows if and only if
 * it does not return NULL.
 * Context: owning CPU, preemption off, any level up to NMI.
 */
void *kbarman_ring_reserve(struct kbarman_ring *ring, unsigned long length, u64 *timestamp);

/* The same, but a failure is not counted: for records about losses. */
void *kbarman_ring_try_reserve(struct kbarman_ring *ring, unsigned long length, u64 *timestamp);

/* Publish; for a nested writer, when the outermost one commits. */
void kbarman_ring_commit(struct kbarman_ring *ring);

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
 * The number of records that the ring holds. Exact while no writer is active,
 * -EAGAIN if the writer was faster sixteen times in a row.
 */
long kbarman_ring_count(const struct kbarman_ring *ring);

/*
 * The timestamp of the oldest record: U64_MAX if there is none, 0 if the writer was
 * faster sixteen times in a row. Context: any CPU, any time.
 */
u64 kbarman_ring_oldest(const struct kbarman_ring *ring);

/* The number of bytes between read_offset and write_offset. Context: any. */
unsigned long kbarman_ring_fill(const struct kbarman_ring *ring);

static inline unsigned long kbarman_ring_size(const struct kbarman_ring *ring)
{
	return ring->mask + 1;
}

#endif /* KBARMAN_RING_H */
