/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Call chains of the current task, for samples and task switches. They are gathered
 * before a place in the ring is reserved, into memory of the CPU's own: one piece for
 * each level at which writers nest, so a probe allocates nothing and waits for nobody.
 *
 * Frames of the user's code are followed by their frame pointers, those of the kernel
 * as the architecture can (callchain_x86.c, callchain_arm64.c, callchain_other.c).
 *
 * Context of all but allocate and free: preemption off, any level up to NMI.
 */
#ifndef KBARMAN_CALLCHAIN_H
#define KBARMAN_CALLCHAIN_H

#include <linux/cpumask.h>
#include <linux/types.h>

#include "uapi/barman_v2.h"
#include "uapi/kbarman.h"

#define KBARMAN_CONFIGURE_CHAIN	(KBARMAN_CONFIGURE_CHAIN_USER | KBARMAN_CONFIGURE_CHAIN_KERNEL)

struct pt_regs;

/* As it stands in a record, with room for max_stack addresses. */
struct kbarman_callchain {
	struct bm_kbarman_callchain head;
	bm_uintptr addresses[];
};

static inline unsigned long kbarman_callchain_bytes(const struct kbarman_callchain *chain)
{
	return sizeof(*chain) + chain->head.nr * sizeof(chain->addresses[0]);
}

/*
 * Memory for chains of at most @max_stack addresses on the CPUs of @cpus; @flags: which
 * of KBARMAN_CONFIGURE_CHAIN they consist of. 0 or -ENOMEM; either way
 * kbarman_callchain_free() follows. Context: task; no chain is being gathered.
 */
int kbarman_callchain_allocate(const struct cpumask *cpus, u32 flags, u32 max_stack);
void kbarman_callchain_free(void);

/*
 * The chain from @regs on, or NULL if there is none. kbarman_callchain_put() gives it
 * back, in the reverse order of getting.
 */
struct kbarman_callchain *kbarman_callchain_sample(struct pt_regs *regs);

/*
 * The chain from the caller of the probe on: frames of this module, and of @iterator,
 * the function that calls the probes of a tracepoint, are left out.
 */
struct kbarman_callchain *kbarman_callchain_here(const void *iterator);

void kbarman_callchain_put(struct kbarman_callchain *chain);	/* NULL is fine */

/* ---- what an architecture knows ---- */

/* KBARMAN_FEATURE_CHAIN_*: what can be had. */
extern const u32 kbarman_callchain_features;

/*
 * A function that makes no frame is a small one: as far behind its first instruction as
 * this at most is it taken for one.
 */
#define KBARMAN_LEAF_BYTES	2048

struct kbarman_frames {
	bm_uintptr *addresses;
	unsigned int nr, max;
	bool skip;		/* those that kbarman_callchain_here() leaves out */
	unsigned long iterator;
};

/* The next frame's @address. False: no more. */
bool kbarman_frames_add(struct kbarman_frames *frames, unsigned long address);

/* Frames of the kernel: the one that @regs were taken in, or else the caller's, and up. */
void kbarman_frames_kernel(struct kbarman_frames *frames, struct pt_regs *regs);

/* Where a task is in its user's code. */
struct kbarman_user_place {
	unsigned long pc;
	unsigned long caller;	/* where it will return to, if that stands in no frame;
				 * else 0 */
	unsigned long frame;	/* address of the innermost frame: that of the next one
				 * and a return address, both of @word bytes; 0 = none */
	unsigned int word;
};

void kbarman_user_place(struct kbarman_user_place *place, struct pt_regs *regs);

/* The user's memory that is mapped now is the current task's. */
bool kbarman_user_is_here(void);

/* A return address as it is without the signature that some machines put into it. */
unsigned long kbarman_plain_address(unsigned long address);

/*
 * Read what @to points to of the current task's memory at @from.
 *
 * Not copy_from_user_nofault(): before 6.4 the hardening of usercopy looks at where the
 * bytes go to, and takes a lock for that. It leaves constant sizes alone.
 */
#define kbarman_read_user(to, from)							\
({											\
	const void __user *__from = (const void __user *)(from);			\
	typeof(to) __to = (to);								\
	bool __read;									\
											\
	/* An interrupt takes its count back before its task goes on. */			\
	data_race((pagefault_disable(), 0));						\
	__read = access_ok(__from, sizeof(*__to)) &&					\
		 !__copy_from_user_inatomic(__to, __from, sizeof(*__to));		\
	/* Here it does: the task finds what it had. */					\
	data_race((pagefault_enable(), 0));						\
	__read;										\
})

#endif /* KBARMAN_CALLCHAIN_H */
