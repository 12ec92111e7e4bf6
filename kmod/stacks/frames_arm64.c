// SPDX-License-Identifier: GPL-2.0-only
/*
 * Call chains on arm64. x29 points to a frame record, which points to the next one, in the kernel
 * and in user code. A kernel chain ends where it leaves the stacks of the task and of interrupts,
 * or with a record of zeros, unless that record says that the registers of interrupted kernel code
 * stand beside it: the chain goes on with these. 32-bit code has no fixed place for frames, so its
 * chains have only the program counter and the link register.
 */
#include <linux/bitops.h>
#include <linux/hardirq.h>
#include <linux/kernel.h>
#include <linux/mm.h>
#include <linux/ptrace.h>
#include <linux/sched.h>
#include <linux/sched/task_stack.h>
#include <linux/sizes.h>
#include <asm/cpufeature.h>
#include <asm/pgtable.h>
#include <asm/sysreg.h>

#include "compat/arm64.h"
#include "stacks/callchain.h"
#include "stacks/frames.h"
#include "stacks/stack.h"
#include "stacks/user_words.h"

const u32 kbarman_callchain_features = KBARMAN_FEATURE_CHAIN_USER | KBARMAN_FEATURE_CHAIN_STACK |
				       KBARMAN_FEATURE_CHAIN_KERNEL;

#define INSN_BL			0x94000000
#define INSN_BL_MASK		0xfc000000
#define BL_REACH		(SZ_128M + KBARMAN_LEAF_BYTES)
#define INSN_PACIASP		0xd503233f
#define INSN_AUTIASP		0xd50323bf
#define INSN_BTI_C		0xd503245f
#define INSN_RET		0xd65f03c0
#define INSN_RETAA		0xd65f0bff
#define INSN_STP_FRAME		0xa9007bfd	/* stp x29, x30, [sp, #imm] */
#define INSN_STP_FRAME_PRE	0xa9807bfd	/* stp x29, x30, [sp, #imm]! */
#define INSN_STP_MASK		0xffc07fff
#define INSN_MOV_FRAME		0x910003fd	/* mov x29, sp; add x29, sp, #imm */
#define INSN_SUB_STACK		0xd10003ff	/* sub sp, sp, #imm */
#define INSN_ADD_STACK		0x910003ff	/* add sp, sp, #imm */
#define INSN_ADD_MASK		0xffc003ff

/* The record at @frame: the next one's address, and that of code. False: it is the last one. */
static bool frame_read_record(unsigned long record[2], unsigned long frame)
{
	const struct pt_regs *regs;

	if (copy_from_kernel_nofault(record, (void *)frame, 2 * sizeof(record[0])))
		return false;
	if (record[0] || record[1])
		return record[1];
	regs = kbarman_frame_regs(frame);
	return regs &&
	       !copy_from_kernel_nofault(&record[0], &regs->regs[29], sizeof(record[0])) &&
	       !copy_from_kernel_nofault(&record[1], &regs->pc, sizeof(record[1]));
}

void kbarman_frames_kernel(struct kbarman_frames *frames, struct pt_regs *regs)
{
	unsigned long task = (unsigned long)task_stack_page(current);
	unsigned long frame = (unsigned long)__builtin_frame_address(0), sp = frame;
	struct kbarman_stacks stacks;
	unsigned long record[2];

	if (regs) {
		if (!kbarman_frames_add(frames, regs->pc))
			return;
		frame = regs->regs[29];
		sp = regs->sp;
	}
	stacks = kbarman_stacks_from(sp, kbarman_interrupt_stack_end(sp),
				     (struct kbarman_stack) { task, task + THREAD_SIZE });
	while (kbarman_stacks_lead_to(&stacks, frame) && frame_read_record(record, frame)) {
		if (!kbarman_frames_add(frames, kbarman_plain_address(record[1])))
			return;
		frame = record[0];
	}
}

/*
 * In a pseudo-NMI, the page tables of the next task may already be loaded. If the kernel maps user
 * memory for each access only (software PAN), the mapped memory is always that of the current task.
 */
bool kbarman_user_is_here(void)
{
	phys_addr_t tables = virt_to_phys(current->mm->pgd);

	if (!in_nmi() || system_uses_ttbr0_pan())
		return true;
	return !((read_sysreg(ttbr0_el1) ^ phys_to_ttbr(tables)) &
		 ~(KBARMAN_TTBR_ASID | KBARMAN_TTBR_CNP));
}

static bool code_makes_frame(u32 insn)
{
	return (insn & INSN_STP_MASK) == INSN_STP_FRAME ||
	       (insn & INSN_STP_MASK) == INSN_STP_FRAME_PRE;
}

/* True before a function has made its frame, and after it has removed its frame. */
static bool code_is_at_edge(u32 insn, u32 next)
{
	switch (insn) {
	case INSN_PACIASP:
	case INSN_AUTIASP:
	case INSN_BTI_C:
	case INSN_RET:
	case INSN_RETAA:
		return true;
	}
	if (code_makes_frame(insn) || (insn & INSN_ADD_MASK) == INSN_MOV_FRAME)
		return true;
	if ((insn & INSN_ADD_MASK) == INSN_SUB_STACK)
		return code_makes_frame(next);
	if ((insn & INSN_ADD_MASK) == INSN_ADD_STACK)
		return next == INSN_RET || next == INSN_AUTIASP;
	return false;
}

/* True if the instruction before @address calls the small function that @pc is in. */
static bool address_is_behind_call_of(unsigned long address, unsigned long pc)
{
	u32 insn;

	/* Farther away than it reaches: no need to look. */
	if (address - pc + BL_REACH >= 2 * BL_REACH ||
	    !kbarman_user_get(&insn, address - sizeof(insn)))
		return false;
	insn = le32_to_cpu((__force __le32)insn);
	return (insn & INSN_BL_MASK) == INSN_BL &&
	       pc - (address - sizeof(insn) + sign_extend64(insn, 25) * 4) < KBARMAN_LEAF_BYTES;
}

/*
 * True if the link register has a return address that is in no frame record. It has one at the
 * edges of a function, and everywhere in a function that makes neither calls nor a frame. In a
 * function with a frame, the link register may still have the same address as the frame record.
 */
static bool regs_return_by_link(const struct pt_regs *regs)
{
	unsigned long link = kbarman_plain_address(regs->regs[30]);
	unsigned long record[2];
	u64 code;

	if (!kbarman_user_get(&code, regs->pc))
		return false;
	code = le64_to_cpu((__force __le64)code);
	if (code_is_at_edge(lower_32_bits(code), upper_32_bits(code)))
		return true;
	if (!address_is_behind_call_of(link, regs->pc))
		return false;
	return !kbarman_user_record(record, regs->regs[29], sizeof(long)) ||
	       kbarman_plain_address(record[1]) != link;
}

void kbarman_user_place(struct kbarman_user_place *place, struct pt_regs *regs)
{
	place->pc = regs->pc;
	if (compat_user_mode(regs)) {
		place->caller = regs->compat_lr & ~1UL;
		return;
	}
	if (regs_return_by_link(regs))
		place->caller = regs->regs[30];
	place->frame = regs->regs[29];
	place->word = sizeof(long);
}
