/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where the stacks of threads are, for sparse stacks. The stack of a new thread ends where the
 * thread began, and that is known when the thread is created. Of other stacks the worker of the
 * mappings notes the mapping that has them. Probes read the table, also in an NMI. The table is
 * lossy: a thread may take the place of another one.
 */
#ifndef KBARMAN_THREAD_STACKS_H
#define KBARMAN_THREAD_STACKS_H

#include <linux/types.h>

#include "maps/range.h"

#define KBARMAN_STACKS_BITS	11

struct mm_struct;
struct pt_regs;
struct task_struct;

struct kbarman_thread_stack {
	unsigned int sequence;		/* odd while it is written */
	u32 task_id;
	const struct mm_struct *mm;	/* NULL: the place is free */
	unsigned long began;		/* the thread's first stack pointer; 0 = not known */
	struct kbarman_range range;	/* where the stack may be; span 0: no stack is known */
	unsigned long asked;		/* jiffies when a probe last asked for it */
};

struct kbarman_thread_stacks {
	struct kbarman_thread_stack of[1 << KBARMAN_STACKS_BITS];	/* by hash of the task id */
};

/* What the worker is asked: where is the stack that @sp of the thread points into? */
struct kbarman_stack_question {
	unsigned long sp;
	unsigned long thread_pointer;	/* of the machine; 0 = not known */
};

/* That about the stack of @regs, which are of user code of the current task. Context: any. */
struct kbarman_stack_question kbarman_stack_question(struct pt_regs *regs);

/* @child is new and has not run yet. Context: @parent, preemption off. */
void kbarman_thread_stacks_fork(struct kbarman_thread_stacks *stacks, struct task_struct *parent,
				struct task_struct *child);

/* Answer @question of thread @task_id of @mm. Context: the worker, which holds @mm (mm_count). */
void kbarman_thread_stacks_look(struct kbarman_thread_stacks *stacks, struct mm_struct *mm,
				u32 task_id, const struct kbarman_stack_question *question);

/*
 * The range of the current thread's stack that @sp points into. False: it is not known. @ask: the
 * worker should be asked, because the range is not known, or may not be true any more. Context:
 * any.
 */
bool kbarman_thread_stacks_find(struct kbarman_thread_stacks *stacks, unsigned long sp,
				struct kbarman_range *range, bool *ask);

#endif /* KBARMAN_THREAD_STACKS_H */
