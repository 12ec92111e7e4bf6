/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Memory that Linux does not use and that survives a reset (module parameter `memory`). It has two
 * halves, each for one recording: of this boot, or a former one, which stays until it is released or
 * until its half is needed. A half begins with a stamp (uapi/stamp.h). Who records into it gets its
 * pages one behind the other, and gives them back together.
 */
#ifndef KBARMAN_RESERVED_H
#define KBARMAN_RESERVED_H

#include <linux/types.h>

struct kbarman_half;
struct kbarman_stamp;

/* 0, or why the parameter can't be followed, after a message. Context: module init and exit. */
int kbarman_reserved_init(void);
void kbarman_reserved_exit(void);

/* What a capture can have of a half; 0: there is no such memory. Context: any. */
u64 kbarman_reserved_bytes(void);

/* ---- this boot ---- */

/*
 * A half that is all zeroes: one that is free; if both have former recordings, the one whose
 * recording is worth less. Or an ERR_PTR: -EOPNOTSUPP, -EADDRINUSE. Context: task.
 */
struct kbarman_half *kbarman_half_take(void);
/* What was recorded is not wanted any more. NULL is allowed. */
void kbarman_half_give(struct kbarman_half *half);

/*
 * The half has the capture with the beacons' number @capture from now on, of the user @uid of the
 * initial namespace.
 */
void kbarman_half_stamp(struct kbarman_half *half, u64 capture, u32 uid, bool kernel_addresses);

/* The next @bytes, whole pages, or NULL: there are not so many. One caller at a time. */
void *kbarman_half_pages(struct kbarman_half *half, u64 bytes);

/* What is taken of it; 0 of NULL. */
u64 kbarman_half_bytes(const struct kbarman_half *half);

/*
 * The page frame of @memory, which is of the half, or of kbarman_memory_pages() if that is NULL.
 * Context: any.
 */
unsigned long kbarman_half_frame(const struct kbarman_half *half, const void *memory);

/*
 * All recordings of this boot end: @end and @text as in the stamp. Context: any, NMI included; nobody
 * else writes stamps.
 */
void kbarman_reserved_end(u32 end, const char *text);

/* ---- former boots ---- */

/* Former recording @number, the older one first, until kbarman_former_put(). Or NULL. */
struct kbarman_half *kbarman_former_get(u32 number);
void kbarman_former_put(struct kbarman_half *half);

/* 0, or -EBUSY: somebody else has it, too. The caller has it, and puts it all the same. */
int kbarman_former_release(struct kbarman_half *half);

/* Its stamp, and behind it what it recorded: stamp->bytes in all. */
const struct kbarman_stamp *kbarman_former_stamp(const struct kbarman_half *half);

#endif /* KBARMAN_RESERVED_H */
