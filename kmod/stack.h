/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where a chain of frame records may lead: up the stack that it begins on, and from an
 * interrupt's stack once to that of the task. A register that holds something else for a moment,
 * or memory that somebody wrote to, ends the chain, and leads nowhere. Pure.
 */
#ifndef KBARMAN_STACK_H
#define KBARMAN_STACK_H

/* Nothing below @low is looked at any more, nor anything from @high on. */
struct kbarman_stack {
	unsigned long low, high;
};

struct kbarman_stacks {
	struct kbarman_stack now;
	struct kbarman_stack task;	/* empty once the chain is there */
};

/*
 * For a chain that begins above the stack pointer @sp; @task: all of the task's stack. @end: of the
 * stack that @sp is on, if that is another one.
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

/* The record of two words at @frame may be read as the next one. */
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
