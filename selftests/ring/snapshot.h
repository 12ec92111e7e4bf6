/* SPDX-License-Identifier: MIT */
/* A reader of a ring that runs, as kmod/uapi/kbarman.h tells it. */
#ifndef SNAPSHOT_H
#define SNAPSHOT_H

#include <errno.h>
#include <string.h>

#include "ring/ring.h"

#define SNAPSHOT_TRIES	16

/* The blocks [start, start + length) of the ring to @to. Who writes there meanwhile is known later. */
static void copy_out(const struct kbarman_ring *ring, u8 *to, unsigned long start,
		     unsigned long length)
{
	unsigned long at = start & ring->mask;
	unsigned long part = min(length, kbarman_ring_size(ring) - at);

	memcpy(to, ring->data + at, part);
	memcpy(to + part, ring->data, length - part);
}

/*
 * Copy all blocks of the ring to @to, which has room for as many bytes as the ring, in order.
 * Returns the number of bytes, and in @position where the first block stood; -EAGAIN: the writer
 * was faster sixteen times in a row.
 */
static long ring_snapshot(const struct kbarman_ring *ring, void *to, unsigned long *position)
{
	const unsigned long *read_offset = kbarman_ring_low_word(&ring->header->read_offset);
	const unsigned long *write_offset = kbarman_ring_low_word(&ring->header->write_offset);
	unsigned long start, end, oldest;
	int tries;

	for (tries = 0; tries < SNAPSHOT_TRIES; tries++) {
		end = smp_load_acquire(write_offset);		/* [B] */
		start = smp_load_acquire(read_offset);
		*position = start;
		if (start == end)
			return 0;
		if (kbarman_ring_after(start, end))
			continue;
		copy_out(ring, to, start, end - start);
		smp_rmb();					/* [A] */
		oldest = READ_ONCE(*read_offset);
		if (kbarman_ring_after(oldest, end))
			continue;
		if (kbarman_ring_after(oldest, start)) {
			memmove(to, (u8 *)to + (oldest - start), end - oldest);
			*position = oldest;
		}
		return end - *position;
	}
	return -EAGAIN;
}

#endif /* SNAPSHOT_H */
