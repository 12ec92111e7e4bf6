// SPDX-License-Identifier: GPL-2.0-only
#include <linux/compiler.h>
#include <linux/hash.h>
#include <linux/jiffies.h>
#include <linux/mm.h>
#include <linux/ptrace.h>
#include <linux/sched.h>
#include <linux/sched/task.h>
#include <linux/sched/task_stack.h>
#include <asm/barrier.h>

#include "compat/cmpxchg.h"
#include "maps/mm_user.h"
#include "maps/thread_stacks.h"

#define FIRST_BYTES	16384UL		/* no thread has a smaller stack */
#define ABOVE_BYTES	64		/* a new thread's stack pointer may be so far above where it
					 * began: clone() puts arguments there */
#define UNKNOWN_PAUSE	(HZ / 50 + 1)	/* jiffies until a thread may ask again for a stack that
					 * is not known */
#define KNOWN_PAUSE	HZ		/* and for one that is: the program may have unmapped it */

static struct kbarman_thread_stack *stack_place(struct kbarman_thread_stacks *stacks, u32 task_id)
{
	return &stacks->of[hash_32(task_id, KBARMAN_STACKS_BITS)];
}

/* Other writers of a place write @to into it as well, or let it be. */
static void stack_write(struct kbarman_thread_stack *place, const struct kbarman_thread_stack *to)
{
	unsigned int sequence = READ_ONCE(place->sequence);

	/* Fully ordered: [1]. */
	if (sequence & 1 || !try_cmpxchg(&place->sequence, &sequence, sequence + 1))
		return;
	WRITE_ONCE(place->task_id, to->task_id);
	WRITE_ONCE(place->mm, to->mm);
	WRITE_ONCE(place->began, to->began);
	WRITE_ONCE(place->range.low, to->range.low);
	WRITE_ONCE(place->range.span, to->range.span);
	WRITE_ONCE(place->asked, to->asked);
	smp_store_release(&place->sequence, sequence + 2);	/* [2] */
}

/* Copy what @place has of thread @task_id of @mm. False: nothing, or it is just written. */
static bool stack_read(struct kbarman_thread_stack *to, const struct kbarman_thread_stack *place,
		       u32 task_id, const struct mm_struct *mm)
{
	unsigned int sequence = smp_load_acquire(&place->sequence);	/* pairs with [2] */

	if (sequence & 1 || READ_ONCE(place->task_id) != task_id || READ_ONCE(place->mm) != mm)
		return false;
	to->task_id = task_id;
	to->mm = mm;
	to->began = READ_ONCE(place->began);
	to->range.low = READ_ONCE(place->range.low);
	to->range.span = READ_ONCE(place->range.span);
	to->asked = READ_ONCE(place->asked);
	smp_rmb();	/* pairs with [1] */
	return READ_ONCE(place->sequence) == sequence;
}

/* ---- new threads ---- */

void kbarman_thread_stacks_fork(struct kbarman_thread_stacks *stacks, struct task_struct *parent,
				struct task_struct *child)
{
	unsigned long began = user_stack_pointer(task_pt_regs(child));
	struct kbarman_thread_stack stack = { };

	if (began != user_stack_pointer(task_pt_regs(parent))) {
		stack.began = began;
		stack.range.span = min(began, FIRST_BYTES);
		stack.range.low = began - stack.range.span;
	} else if (!stack_read(&stack, stack_place(stacks, parent->pid), parent->pid,
			       parent->mm)) {
		/* A former owner of the id must not lend its stack. */
		stack = (struct kbarman_thread_stack) { };
	}
	stack.task_id = child->pid;
	stack.mm = child->mm;
	stack_write(stack_place(stacks, child->pid), &stack);
}

/* ---- the worker ---- */

/*
 * A stack ends where its thread began, or at the thread pointer: C libraries put what belongs to
 * the thread above its stack, into the same mapping. Otherwise it ends with the mapping, which also
 * has what Linux merged with it.
 */
static unsigned long stack_end(const struct vm_area_struct *vma, unsigned long began,
			       const struct kbarman_stack_question *question)
{
	if (began + ABOVE_BYTES >= question->sp && began > vma->vm_start && began <= vma->vm_end)
		return began;
	if (question->thread_pointer > question->sp && question->thread_pointer < vma->vm_end)
		return question->thread_pointer;
	return vma->vm_end;
}

/* Stacks are ordinary memory. A device may take each read as an order. */
static bool vma_may_have_stack(const struct vm_area_struct *vma)
{
	return vma->vm_flags & VM_WRITE && !(vma->vm_flags & (VM_IO | VM_PFNMAP));
}

/* False: the memory can't be looked at now. */
static bool stack_find(struct kbarman_thread_stack *stack, struct mm_struct *mm,
		       const struct kbarman_stack_question *question)
{
	struct vm_area_struct *vma;

	if (!mmap_read_trylock(mm))
		return false;
	vma = find_vma(mm, question->sp);
	stack->range = (struct kbarman_range) { };
	if (vma && vma->vm_start <= question->sp && vma_may_have_stack(vma)) {
		stack->range.low = vma->vm_start;
		stack->range.span = stack_end(vma, stack->began, question) - vma->vm_start;
	}
	mmap_read_unlock(mm);
	return true;
}

void kbarman_thread_stacks_look(struct kbarman_thread_stacks *stacks, struct mm_struct *mm,
				u32 task_id, const struct kbarman_stack_question *question)
{
	struct kbarman_thread_stack *place = stack_place(stacks, task_id);
	struct kbarman_thread_stack stack;
	struct kbarman_range before;
	struct task_struct *task;

	if (!stack_read(&stack, place, task_id, mm))
		stack = (struct kbarman_thread_stack) { .task_id = task_id, .mm = mm };
	before = stack.range;
	task = kbarman_mm_lock_user(mm, task_id);
	if (!task)
		return;
	/* While it is written, nobody can read it. */
	if (stack_find(&stack, mm, question) &&
	    (stack.range.low != before.low || stack.range.span != before.span)) {
		stack.asked = jiffies;
		stack_write(place, &stack);
	}
	kbarman_mm_unlock_user(task);
}

/* ---- probes ---- */

/* That of the current task's program, or 0 if it is not known. */
static unsigned long thread_pointer(struct pt_regs *regs)
{
#if defined(CONFIG_X86_64)
	return current->thread.fsbase;
#elif defined(CONFIG_ARM64)
	return compat_user_mode(regs) ? read_sysreg(tpidrro_el0) : read_sysreg(tpidr_el0);
#elif defined(CONFIG_ARM)
	return current_thread_info()->tp_value[0];
#elif defined(CONFIG_RISCV)
	return regs->tp;
#else
	return 0;
#endif
}

struct kbarman_stack_question kbarman_stack_question(struct pt_regs *regs)
{
	return (struct kbarman_stack_question) { user_stack_pointer(regs), thread_pointer(regs) };
}

bool kbarman_thread_stacks_find(struct kbarman_thread_stacks *stacks, unsigned long sp,
				struct kbarman_range *range, bool *ask)
{
	struct kbarman_thread_stack *place = stack_place(stacks, current->pid), stack;
	bool known = stack_read(&stack, place, current->pid, current->mm) && stack.range.span &&
		     sp - stack.range.low <= stack.range.span + ABOVE_BYTES;
	unsigned long now = jiffies, asked = READ_ONCE(place->asked);

	*ask = now - asked >= (known ? KNOWN_PAUSE : UNKNOWN_PAUSE);
	if (*ask)
		WRITE_ONCE(place->asked, now);
	if (known)
		*range = stack.range;
	return known;
}
