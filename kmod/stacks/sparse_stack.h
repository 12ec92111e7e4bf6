/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The sparse stack of the current task, behind its call chain: registers and the words of the stack
 * that a reader needs to unwind. Nothing here knows unwind tables.
 */
#ifndef KBARMAN_SPARSE_STACK_H
#define KBARMAN_SPARSE_STACK_H

#include <linux/types.h>

#include "stacks/sparse.h"
#include "uapi/barman_v2.h"

#define KBARMAN_STACK_UNITS	4096	/* __u32 of words for which there is room at least */

struct pt_regs;

/* Bytes of the longest sparse stack, of which @limit bytes are looked at. */
unsigned long kbarman_sparse_stack_max(u32 limit);

/* Bytes that are needed to gather it. */
unsigned long kbarman_sparse_stack_room(u32 limit);

/*
 * Gather the stack of @regs, which are of the current task's user code, into @to. @ranges: where
 * code and the stack are. Nothing behind the end of the stack's range, rounded up to 4 words, is
 * kept, nor after @limit bytes; of too many words, those near the stack pointer are. @known: the
 * stack ends with its range. @ticks of the clock: how long the scan may take, 0: as long as
 * it does; it may take half as long again. Returns the number of bytes, or 0 if the registers of
 * this architecture are not known.
 * Context: preemption off, any level up to NMI.
 */
unsigned long kbarman_sparse_stack_gather(struct bm_kbarman_stack *to, const struct pt_regs *regs,
					  const struct kbarman_sparse_ranges *ranges, u32 limit,
					  bool known, u64 ticks);

#endif /* KBARMAN_SPARSE_STACK_H */
