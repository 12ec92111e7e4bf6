/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Call chains of the current task, for samples and task switches. A chain is gathered before space
 * in the ring is reserved. Each CPU has memory for one chain at each level at which writers can
 * nest, so a probe allocates nothing and waits for nothing. Only the two outermost levels have
 * room for sparse stacks: a switch or an interrupt, and the NMI in it.
 *
 * Frames of user code are followed by frame pointers, or left to the reader, who gets a sparse
 * stack (sparse_stack.h). Frames of the kernel are found as the architecture allows
 * (callchain_x86.c, callchain_arm64.c, callchain_riscv.c, callchain_other.c).
 *
 * Context of all functions but memory, add and free: preemption off, any level up to NMI.
 */
#ifndef KBARMAN_CALLCHAIN_H
#define KBARMAN_CALLCHAIN_H

#include <linux/kernel.h>
#include <linux/thread_info.h>
#include <linux/types.h>

#include "uapi/barman_v2.h"
#include "uapi/kbarman.h"

#define KBARMAN_CONFIGURE_CHAIN	(KBARMAN_CONFIGURE_CHAIN_USER | KBARMAN_CONFIGURE_CHAIN_KERNEL | \
				 KBARMAN_CONFIGURE_CHAIN_STACK)

struct kbarman_cpu;
struct kbarman_session;
struct pt_regs;

/*
 * The chain as a record has it: from `head` on, with room for max_stack addresses and a sparse
 * stack.
 */
struct kbarman_callchain {
	unsigned long stack_bytes;	/* of the sparse stack behind the addresses */
	struct bm_kbarman_callchain head;
	bm_uintptr addresses[];
};

static inline unsigned long kbarman_callchain_bytes(const struct kbarman_callchain *chain)
{
	return sizeof(chain->head) + chain->head.nr * sizeof(chain->addresses[0]) +
	       chain->stack_bytes;
}

/* Bytes of the longest chain of @session, with its sparse stack. */
unsigned long kbarman_callchain_max(const struct kbarman_session *session);

/* Bytes that the chains of @session take for each CPU. */
unsigned long kbarman_callchain_memory(const struct kbarman_session *session);

/*
 * Allocate memory for the chains of @session on @cpu, if it has none, and charge it to the capture.
 * 0, -ENOMEM or -EDQUOT. Context: task, session's lock held; the CPU gathers no chain.
 */
int kbarman_callchain_add(struct kbarman_session *session, int cpu);

/* Free that of all CPUs, before the session gives up its capture. Context: as above. */
void kbarman_callchain_free(struct kbarman_session *session);

/*
 * The chain from @regs on, or NULL if there is none. @here: what the session has of this CPU.
 * Chains are given back by kbarman_callchain_put(), the last one first.
 */
struct kbarman_callchain *kbarman_callchain_sample(struct kbarman_cpu *here, struct pt_regs *regs);

/*
 * The chain from the caller of the probe on. Leaves out frames of this module and of @iterator, the
 * function that calls the probes of a tracepoint.
 */
struct kbarman_callchain *kbarman_callchain_here(struct kbarman_cpu *here, const void *iterator);

/* @chain may be NULL. */
void kbarman_callchain_put(struct kbarman_cpu *here, struct kbarman_callchain *chain);

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

/* @place is all 0. Context: as of the others, user faults off. */
void kbarman_user_place(struct kbarman_user_place *place, struct pt_regs *regs);

/* True if the user memory that is mapped now belongs to the current task. */
bool kbarman_user_is_here(void);

/*
 * The end of the interrupt stack that @sp is on. The kernel does not export the address of this
 * stack. The stack is as large as a task's stack, and has the same alignment if it is allocated in
 * the same way.
 */
static inline unsigned long kbarman_interrupt_stack_end(unsigned long sp)
{
	return (IS_ENABLED(CONFIG_VMAP_STACK) ? ALIGN_DOWN(sp, THREAD_SIZE) : sp) + THREAD_SIZE;
}

#endif /* KBARMAN_CALLCHAIN_H */
