/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/*
 * Where a capture is in the memory of a machine that does not run any more.
 *
 * A map of a CPU (kbarman.h) has two parts: the header's pages, which all CPUs share, and the ring with its tail. The
 * pages of a part are anywhere in memory. Beacons say where: pages that nobody can map, each with a part of the page
 * frames of a part. A reader of a memory dump looks at the begin of each page for the magic, and needs nothing else:
 * no symbols, and no other page. All words have the machine's word order, so the magic shows it.
 *
 * A beacon is there as long as its part is. A capture that was never recorded into has no magic in its header.
 * Symbols (KBARMAN_ADD_SYMBOLS) are a part that no map has: a __u64, which is the number of their bytes, and these.
 */
#ifndef _UAPI_KBARMAN_BEACON_H
#define _UAPI_KBARMAN_BEACON_H

#include <linux/types.h>

#define KBARMAN_BEACON_MAGIC	0x424541434f4e3031ULL	/* "BEACON01" */

struct kbarman_beacon {
	__u64 magic;
	__u64 sum;		/* kbarman_beacon_sum() */
	__u64 capture;		/* a number at random: beacons of the same capture have the same */
	__u64 page_bytes;	/* of a frame */
	__u64 header_bytes;	/* of the part that all CPUs share */
	__u64 map_bytes;	/* of the map of a CPU: the header's, and those of its ring with the tail */
	__u64 part;		/* 0: the header; N + 1: the ring of CPU N; ~0: the symbols */
	__u64 first;		/* number of the page in its part whose frame is the first one here */
	__u64 count;		/* frames here */
	__u64 frames[];		/* the physical address of each page, divided by page_bytes */
};

#define KBARMAN_BEACON_HEADER	0
#define KBARMAN_BEACON_RING(cpu) ((__u64)(cpu) + 1)
#define KBARMAN_BEACON_SYMBOLS	(~0ULL)

/* Of the words from @word to @end, behind what has this @sum. It is no secret: it shows damage. */
static inline __u64 kbarman_words_sum(__u64 sum, const __u64 *word, const __u64 *end)
{
	for (; word < end; word++)
		sum = (sum ^ *word) * 0x100000001b3ULL;
	return sum;
}

/* Of the words behind `sum`, up to the last frame. */
static inline __u64 kbarman_beacon_sum(const struct kbarman_beacon *beacon)
{
	return kbarman_words_sum(KBARMAN_BEACON_MAGIC, &beacon->capture, beacon->frames + beacon->count);
}

#endif /* _UAPI_KBARMAN_BEACON_H */
