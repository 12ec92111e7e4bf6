/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Call chains of the current task, for samples and task switches. A chain is gathered before space
 * in the ring is reserved. Each CPU has memory for one chain at each level at which writers can
 * nest, so a probe allocates nothing and waits for nothing.
 *
 * Frames of user code are followed by frame pointers. Frames of the kernel are found as the
 * architecture allows (callchain_x86.c, callchain_arm64.c, callchain_riscv.c, callchain_other.c).
 *
 * Context of all functions but allocate and free: preemption off, any level up to NMI.
 */
#ifndef KBARMAN_CALLCHAIN_H
#define KBARMAN_CALLCHAIN_H

#include <linux/cpumask.h>
#include <linux/kernel.h>
#include <linux/thread_info.h>
#include <linux/types.h>

#include "uapi/barman_v2.h"
#include "uapi/kbarman.h"

#define KBARMAN_CONFIGURE_CHAIN	(KBARMAN_CONFIGURE_CHAIN_USER | KBARMAN_CONFIGURE_CHAIN_KERNEL)

struct pt_regs;

/* The chain as a record has it, with room for max_stack addresses. */
struct kbarman_callchain {
	struct bm_kbarman_callchain head;
	bm_uintptr addresses[];
};

static inline unsigned long kbarman_callchain_bytes(const struct kbarman_callchain *chain)
{
	return sizeof(*chain) + chain->head.nr * sizeof(chain->addresses[0]);
}

/*
 * Allocate memory for chains of at most @max_stack addresses on the CPUs of @cpus. @flags are the
 * KBARMAN_CONFIGURE_CHAIN_* of which the chains consist. 0 or -ENOMEM; after either,
 * kbarman_callchain_free() must be called. Context: task; no chain is being gathered.
 */
int kbarman_callchain_allocate(const struct cpumask *cpus, u32 flags, u32 max_stack);
void kbarman_callchain_free(void);

/*
 * The chain from @regs on, or NULL if there is none. Chains are given back by
 * kbarman_callchain_put(), the last one first.
 */
struct kbarman_callchain *kbarman_callchain_sample(struct pt_regs *regs);

/*
 * The chain from the caller of the probe on. Leaves out frames of this module and of @iterator, the
 * function that calls the probes of a tracepoint.
 */
struct kbarman_callchain *kbarman_callchain_here(const void *iterator);

void kbarman_callchain_put(struct kbarman_callchain *chain);	/* NULL is allowed */

/* ---- per architecture ---- */

/* KBARMAN_FEATURE_CHAIN_* of this architecture. */
extern const u32 kbarman_callchain_features;

/*
 * A function without a frame is assumed to be small: the PC is less than this many bytes behind the
 * function's first instruction.
 */
#define KBARMAN_LEAF_BYTES	2048

struct kbarman_frames {
	bm_uintptr *addresses;
	unsigned int nr, max;
	bool skip;		/* skip frames that kbarman_callchain_here() leaves out */
	unsigned long iterator;
};

/* Add the @address of the next frame. False if there is no room. */
bool kbarman_frames_add(struct kbarman_frames *frames, unsigned long address);

/* Add the kernel frames, innermost first: from @regs on, or from the caller on if @regs is NULL. */
void kbarman_frames_kernel(struct kbarman_frames *frames, struct pt_regs *regs);

/* Where a task is in its user code. */
struct kbarman_user_place {
	unsigned long pc;
	unsigned long caller;	/* return address that is not in a frame yet or any more; 0 =
				 * none */
	unsigned long frame;	/* points to the innermost frame record, 0 = none. A record has two
				 * words of @word bytes: a pointer to the next record, and a
				 * return address */
	unsigned int word;
	unsigned int behind;	/* what points to a record points so many bytes behind its address:
				 * @frame, and the first word of a record */
};

void kbarman_user_place(struct kbarman_user_place *place, struct pt_regs *regs);

/* True if the user memory that is mapped now belongs to the current task. */
bool kbarman_user_is_here(void);

/*
 * Read the frame record at @address of the user's stack, of two words of @word bytes. False if it
 * can't be read.
 */
bool kbarman_read_record(unsigned long record[2], unsigned long address, unsigned int word);

/*
 * The end of the interrupt stack that @sp is on. The kernel does not export the address of this
 * stack. The stack is as large as a task's stack, and has the same alignment if it is allocated in
 * the same way.
 */
static inline unsigned long kbarman_interrupt_stack_end(unsigned long sp)
{
	return (IS_ENABLED(CONFIG_VMAP_STACK) ? ALIGN_DOWN(sp, THREAD_SIZE) : sp) + THREAD_SIZE;
}

/* @address without a pointer authentication code. */
unsigned long kbarman_plain_address(unsigned long address);

/*
 * Read *@to from address @from of the current task's memory. True if all bytes were read.
 *
 * copy_from_user_nofault() can't be used: before 6.4, hardened usercopy takes a lock to check the
 * destination. Copies of constant size are not checked.
 */
#define kbarman_read_user(to, from)							\
({											\
	const void __user *__from = (const void __user *)(from);			\
	typeof(to) __to = (to);								\
	bool __read;									\
											\
	/* An interrupt leaves the count as it was. */					\
	data_race((pagefault_disable(), 0));						\
	__read = access_ok(__from, sizeof(*__to)) &&					\
		 !__copy_from_user_inatomic(__to, __from, sizeof(*__to));		\
	/* As above. */									\
	data_race((pagefault_enable(), 0));						\
	__read;										\
})

#endif /* KBARMAN_CALLCHAIN_H */
