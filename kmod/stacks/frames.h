/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The frames of a call chain: what each architecture has to say (frames_x86.c, frames_arm64.c,
 * frames_riscv.c, frames_other.c). Context of all functions: preemption off, any level up to NMI.
 */
#ifndef KBARMAN_FRAMES_H
#define KBARMAN_FRAMES_H

#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/thread_info.h>
#include <linux/types.h>

#include "uapi/barman_v2.h"

struct kbarman_known_chains;
struct pt_regs;

/*
 * A function without a frame is assumed to be small: the PC is less than this many bytes behind the
 * function's first instruction.
 */
#define KBARMAN_LEAF_BYTES	2048

#define KBARMAN_ITERATOR_BYTES	1024	/* longer than the function that calls the probes of a tracepoint;
				 * the next function of this kind is farther away */

struct kbarman_frames {
	bm_uintptr *addresses;
	unsigned int nr, max;
	bool skip;		/* skip frames that kbarman_callchain_here() leaves out */
	unsigned long iterator;
	struct kbarman_known_chains *known;	/* NULL: none, or somebody else uses them now */
};

/* A code @address as the CPU would fetch from it, without a pointer authentication code. */
static __always_inline unsigned long kbarman_plain_address(unsigned long address)
{
#ifdef CONFIG_ARM64
	/* xpaclri, which is a nop on CPUs without pointer authentication. */
	register unsigned long link asm("x30") = address;

	asm("hint #7" : "+r" (link));
	return link;
#else
	return address;
#endif
}

/* Add the @address of the next frame. False if there is no room. */
static inline bool kbarman_frames_add(struct kbarman_frames *frames, unsigned long address)
{
	if (frames->skip) {
		if (within_module(address, THIS_MODULE) ||
		    address - frames->iterator < KBARMAN_ITERATOR_BYTES)
			return true;
		frames->skip = false;
	}
	if (frames->nr == frames->max)
		return false;
	frames->addresses[frames->nr++] = address;
	return true;
}

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

#endif /* KBARMAN_FRAMES_H */
