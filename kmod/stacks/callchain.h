/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * stacks/: call chains of the current task, for samples and task switches. A chain is gathered
 * before space in the ring is reserved. Each CPU has memory for one chain at each level at which
 * writers can nest, so a probe allocates nothing and waits for nothing. Only the two outermost
 * levels have room for sparse stacks: a switch or an interrupt, and the NMI in it.
 *
 * Frames of user code are followed by frame pointers, or left to the reader, who gets a sparse
 * stack (sparse_stack.h). Frames of the kernel are found as the architecture allows (frames.h), those
 * of x86 often without its unwinder (known_chain.h).
 *
 * Context of all functions but memory, add and free: preemption off, any level up to NMI.
 */
#ifndef KBARMAN_CALLCHAIN_H
#define KBARMAN_CALLCHAIN_H

#include <linux/kernel.h>
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

/* KBARMAN_FEATURE_CHAIN_* of this architecture. */
extern const u32 kbarman_callchain_features;

#endif /* KBARMAN_CALLCHAIN_H */
