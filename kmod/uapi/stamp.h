/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/*
 * Whose recording is in memory that survives a reset (module parameter `memory`), and how it ended.
 *
 * That memory has two halves, and each has one recording at a time. A stamp is the first page of a half. Behind it are
 * the pages of the capture, with their beacons (beacon.h). What is behind `bytes` is not of this recording.
 */
#ifndef _UAPI_KBARMAN_STAMP_H
#define _UAPI_KBARMAN_STAMP_H

#include <linux/types.h>

#include "beacon.h"

#define KBARMAN_STAMP_MAGIC	0x5354414d50303031ULL	/* "STAMP001" */
#define KBARMAN_STAMP_CHAIN	16

enum kbarman_end {
	KBARMAN_END_UNKNOWN	= 0,	/* Linux did not say: a reset, a watchdog, a crash kernel, no power */
	KBARMAN_END_REBOOT	= 1,	/* a restart, a halt, or another kernel by kexec */
	KBARMAN_END_PANIC	= 2,
};

struct kbarman_stamp {
	__u64 magic;
	__u64 sum;		/* kbarman_stamp_sum() */
	__u64 capture;		/* as in the capture's beacons */
	__u64 address;		/* physical, of the stamp */
	__u64 uid;		/* who opened the descriptor that recorded, in the initial user namespace; ~0U: nobody,
				 * it began with the module */
	__u64 flags;		/* KBARMAN_STAMP_* */
	__u64 began_ns;		/* CLOCK_REALTIME, of the configure */
	/* What changes later is not part of the sum. */
	__u64 bytes;		/* from the stamp on: what is used, whole pages */
	__u64 end_sum;		/* kbarman_stamp_end_sum(), written last; 0: nothing behind it is written */
	__u64 ticks;		/* the time of the end, as in records */
	__u32 end;		/* enum kbarman_end */
	__u32 cpu;		/* which ended it, */
	__u32 task_id;		/* and who ran there */
	__u32 nr_chain;
	char comm[16];		/* the task's name, NUL-terminated; that of the text, too */
	char text[128];		/* what panic() was told; of a reboot which one it is: restart, halt or power off */
	__u64 chain[KBARMAN_STAMP_CHAIN];	/* return addresses of the kernel, the innermost first; only with
						 * KBARMAN_STAMP_KERNEL */
};

#define KBARMAN_STAMP_KERNEL	(1U << 0)	/* the recording has kernel addresses */

static inline __u64 kbarman_stamp_sum(const struct kbarman_stamp *stamp)
{
	return kbarman_words_sum(KBARMAN_STAMP_MAGIC, &stamp->capture, &stamp->bytes);
}

static inline __u64 kbarman_stamp_end_sum(const struct kbarman_stamp *stamp)
{
	return kbarman_words_sum(KBARMAN_STAMP_MAGIC, &stamp->ticks, stamp->chain + KBARMAN_STAMP_CHAIN);
}

/* How the recording ended, as far as the stamp can be believed: enum kbarman_end. */
static inline __u32 kbarman_stamp_end(const struct kbarman_stamp *stamp)
{
	return stamp->end_sum && stamp->end_sum == kbarman_stamp_end_sum(stamp) ? stamp->end :
	       (__u32)KBARMAN_END_UNKNOWN;
}

#endif /* _UAPI_KBARMAN_STAMP_H */
