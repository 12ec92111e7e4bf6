/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where the frame records of a kernel call chain may be. A chain leads up the stack on which it
 * begins, and from an interrupt's stack once to the task's stack. A register may hold another value
 * for a moment, and memory may be overwritten. Such a value ends the chain, and its target is not
 * read. Pure code.
 */
#ifndef KBARMAN_STACK_H
#define KBARMAN_STACK_H

/* Records in [low, high) may be read. */
struct kbarman_stack {
	unsigned long low, high;
};

struct kbarman_stacks {
	struct kbarman_stack now;
	struct kbarman_stack task;	/* empty once the chain has reached it */
};

/*
 * For a chain that begins above the stack pointer @sp. @task is the whole stack of the task. @end
 * is the end of the stack of @sp, if that is not the task's stack.
 */
static inline struct kbarman_stacks kbarman_stacks_from(unsigned long sp, unsigned long end,
							struct kbarman_stack task)
{
	struct kbarman_stacks stacks = { .now = { .low = sp, .high = end }, .task = task };

	if (sp >= task.low && sp < task.high) {
		stacks.now.high = task.high;
		stacks.task = (struct kbarman_stack) { 0, 0 };
	}
	return stacks;
}

static inline bool kbarman_stack_holds(const struct kbarman_stack *stack, unsigned long frame)
{
	return frame >= stack->low && frame < stack->high &&
	       stack->high - frame >= 2 * sizeof(long);
}

/*
 * True if the record of two words at @frame may be read as the next one. Then only records above
 * this one may follow.
 */
static inline bool kbarman_stacks_lead_to(struct kbarman_stacks *stacks, unsigned long frame)
{
	if (frame % sizeof(long))
		return false;
	if (!kbarman_stack_holds(&stacks->now, frame)) {
		if (!kbarman_stack_holds(&stacks->task, frame))
			return false;
		stacks->now = stacks->task;
		stacks->task = (struct kbarman_stack) { 0, 0 };
	}
	stacks->now.low = frame + 2 * sizeof(long);
	return true;
}

#endif /* KBARMAN_STACK_H */
