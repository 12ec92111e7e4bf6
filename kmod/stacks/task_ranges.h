/* SPDX-License-Identifier: GPL-2.0-only */
/* Where the code and the stack of the current task are: the ranges of its sparse stack. */
#ifndef KBARMAN_TASK_RANGES_H
#define KBARMAN_TASK_RANGES_H

#include <linux/types.h>

struct kbarman_session;
struct kbarman_sparse_ranges;
struct pt_regs;

/*
 * Set @ranges, but not `plain`; the stack's range begins at the stack pointer of @regs, of user
 * code. False: where
 * the stack ends is not known. Then the range ends with the page. Context: preemption off, any
 * level up to NMI.
 */
bool kbarman_task_ranges(const struct kbarman_session *session,
			 struct kbarman_sparse_ranges *ranges, struct pt_regs *regs);

#endif /* KBARMAN_TASK_RANGES_H */
