// SPDX-License-Identifier: GPL-2.0-only
/*
 * Call chains on riscv. s0 points behind a frame record, which has the caller's s0 and a return
 * address, in the kernel and in user code. A function that makes no calls may save s0 alone, where
 * others save the return address, and leave the return address in ra.
 *
 * The kernel's entry code saves the registers of the interrupted code where the frame of its callee
 * ends. If that was code of the kernel, the chain goes on with these registers. A kernel chain
 * ends in front of the registers that the task left its user code with.
 */
#include <linux/hardirq.h>
#include <linux/kernel.h>
#include <linux/mm.h>
#include <linux/pfn.h>
#include <linux/ptrace.h>
#include <linux/sched.h>
#include <linux/sched/task_stack.h>
#include <asm/csr.h>
#include <asm/processor.h>

#include "stacks/callchain.h"
#include "stacks/frames.h"
#include "stacks/stack.h"
#include "stacks/user_memory.h"
#include "stacks/user_words.h"

/* Without frame pointers the kernel's chains are single addresses. */
const u32 kbarman_callchain_features = KBARMAN_FEATURE_CHAIN_USER | KBARMAN_FEATURE_CHAIN_STACK |
	(IS_ENABLED(CONFIG_FRAME_POINTER) ? KBARMAN_FEATURE_CHAIN_KERNEL : 0);

#define RECORD		(2 * sizeof(long))	/* bytes of a record, which s0 points behind */
#define ENTRY_BYTES	1024	/* the entry code is shorter, from where exceptions begin to where
				 * they return: 442 bytes in 6.12 */
#define ENTRY_FRAME	ALIGN(sizeof(struct pt_regs), STACK_ALIGN)

/* ---- the kernel ---- */

/* Where the code of an exception's record goes on. */
struct place {
	unsigned long pc, frame, stack;
	unsigned long link;	/* ra of interrupted code; 0: the place is no interrupted one */
};

static bool frame_is_on_stack(const struct kbarman_stacks *stacks, unsigned long frame)
{
	return IS_ALIGNED(frame, sizeof(long)) && kbarman_stack_holds(&stacks->now, frame - RECORD);
}

/*
 * The caller of @place, whose record is read. False: there is none. A word of a stack is no return
 * address: it is the s0 that a function without calls has saved.
 */
static bool frame_find_caller(struct place *place, struct kbarman_stacks *stacks)
{
	unsigned long record[2], link = place->link;

	if (!kbarman_stacks_lead_to(stacks, place->frame - RECORD) ||
	    copy_from_kernel_nofault(record, (void *)(place->frame - RECORD), RECORD))
		return false;
	place->stack = place->frame;
	place->link = 0;
	place->frame = record[0];
	place->pc = record[1];
	if (link && frame_is_on_stack(stacks, record[1])) {
		place->frame = record[1];
		place->pc = link;
	}
	return place->pc;
}

/*
 * If @place is the entry code of an exception: the place that was interrupted. False if it is not,
 * or if that was user code. Interrupted code of the kernel stays on its stack, so it was left where
 * the saved registers end.
 */
static bool frame_find_interrupted(struct place *place, struct kbarman_stacks *stacks)
{
	const struct pt_regs *regs = (const void *)place->stack;
	unsigned long entry = csr_read(CSR_TVEC) & ~3UL, status, sp, pc, link, frame;

	if (place->pc - entry >= ENTRY_BYTES || stacks->now.high - place->stack < ENTRY_FRAME ||
	    get_kernel_nofault(status, &regs->status) || !(status & SR_PP) ||
	    get_kernel_nofault(sp, &regs->sp) || sp != place->stack + ENTRY_FRAME ||
	    get_kernel_nofault(pc, &regs->epc) || get_kernel_nofault(link, &regs->ra) ||
	    get_kernel_nofault(frame, &regs->s0))
		return false;
	stacks->now.low = sp;
	*place = (struct place) { .pc = pc, .frame = frame, .stack = sp, .link = link };
	return true;
}

void kbarman_frames_kernel(struct kbarman_frames *frames, struct pt_regs *regs)
{
	unsigned long task = (unsigned long)task_stack_page(current);
	unsigned long frame = (unsigned long)__builtin_frame_address(0);
	struct place place = { .frame = frame, .stack = frame - RECORD };
	struct kbarman_stacks stacks;

	if (regs) {
		if (!kbarman_frames_add(frames, regs->epc))
			return;
		place = (struct place) { .frame = regs->s0, .stack = regs->sp, .link = regs->ra };
	}
	if (!IS_ENABLED(CONFIG_FRAME_POINTER))
		return;
	stacks = kbarman_stacks_from(place.stack, kbarman_interrupt_stack_end(place.stack),
				     (struct kbarman_stack) {
						task, (unsigned long)task_pt_regs(current) });
	while (frame_find_caller(&place, &stacks))
		if (!kbarman_frames_add(frames, place.pc) ||
		    (frame_find_interrupted(&place, &stacks) &&
		     !kbarman_frames_add(frames, place.pc)))
			return;
}

/* ---- user code ---- */

/* In an NMI, the page tables of the next task may already be loaded, or the kernel's own ones. */
bool kbarman_user_is_here(void)
{
	return (csr_read(CSR_SATP) & SATP_PPN) == PFN_DOWN(virt_to_phys(current->mm->pgd));
}

enum { RA = 1, SP = 2, S0 = 8 };

/* Fields of instructions of 32 bits, and of those of 16 bits. */
#define RD(insn)	((insn) >> 7 & 31)
#define RS1(insn)	((insn) >> 15 & 31)
#define RS2(insn)	((insn) >> 20 & 31)
#define C_RS2(insn)	((insn) >> 2 & 31)

#define IS_LONG(insn)	(((insn) & 3) == 3)	/* 32 bits, not 16 */

/* s0 to s11 */
static bool insn_is_saved(unsigned int reg)
{
	return reg == S0 || reg == 9 || (reg >= 18 && reg <= 27);
}

/* sd REG,offset(sp): which register; 0: another instruction. */
static unsigned int insn_stored(u32 insn)
{
	if (IS_LONG(insn))
		return (insn & 0x707f) == 0x3023 && RS1(insn) == SP ? RS2(insn) : 0;
	return (insn & 0xe003) == 0xe002 ? C_RS2(insn) : 0;	/* c.sdsp */
}

/* ld REG,offset(sp) */
static unsigned int insn_loaded(u32 insn)
{
	if (IS_LONG(insn))
		return (insn & 0x707f) == 0x3003 && RS1(insn) == SP ? RD(insn) : 0;
	return (insn & 0xe003) == 0x6002 ? RD(insn) : 0;	/* c.ldsp */
}

/* addi sp,sp,imm: 1 if it gives stack back, -1 if it takes some; 0: another instruction. */
static int insn_moves_stack(u32 insn)
{
	bool negative;

	if (IS_LONG(insn)) {
		if ((insn & 0xfffff) != 0x10113)
			return 0;
		negative = insn >> 31;
	} else {
		/* c.addi sp, c.addi16sp */
		if ((insn & 0xef83) != 0x0101 && (insn & 0xef83) != 0x6101)
			return 0;
		negative = insn & 0x1000;
	}
	return negative ? -1 : 1;
}

/* addi s0,sp,imm */
static bool insn_makes_frame(u32 insn)
{
	return IS_LONG(insn) ? (insn & 0xfffff) == 0x10413 : (insn & 0xe01f) == 0x0000 && insn;
}

/* A jump without a return address: ret, or a call in place of it. */
static bool insn_leaves(u32 insn)
{
	if (IS_LONG(insn))
		return (insn & 0xfff) == 0x06f || (insn & 0x7fff) == 0x0067;
	/* c.j, c.jr */
	return (insn & 0xe003) == 0xa001 || ((insn & 0xf07f) == 0x8002 && RD(insn));
}

static bool insn_returns(u32 insn)
{
	return insn == 0x00008067 || (!IS_LONG(insn) && insn == 0x8082);
}

/*
 * True before a function has made its frame, and after it has removed its frame. ra and s0 are
 * saved before the other registers, and loaded before them.
 */
static bool place_is_at_edge(u32 insn, u32 next)
{
	unsigned int reg = insn_stored(insn);

	if (reg == RA || insn_is_saved(reg) || insn_makes_frame(insn) || insn_returns(insn))
		return true;
	reg = insn_loaded(insn);
	if (reg != S0 && insn_is_saved(reg))
		return true;
	switch (insn_moves_stack(insn)) {
	case -1:
		return insn_stored(next) == RA || insn_is_saved(insn_stored(next));
	case 1:
		return insn_leaves(next);
	}
	return false;
}

/* The instruction at @code, which has room for one of 32 bits. */
static u32 insn_read(const __le16 code[2])
{
	u32 insn = le16_to_cpu(code[0]);

	return IS_LONG(insn) ? insn | (u32)le16_to_cpu(code[1]) << 16 : insn;
}

static s32 insn_jal_offset(u32 insn)
{
	return (s32)(insn & 0x80000000) >> 11 | (insn & 0xff000) | (insn >> 9 & 0x800) |
	       (insn >> 20 & 0x7fe);
}

struct call {
	bool known;		/* there is one */
	bool direct;		/* and it says where it leads to: */
	unsigned long target;
};

/* The call that returns to @address. */
static struct call insn_call_before(unsigned long address)
{
	struct call call = {};
	__le16 code[4];
	u32 high, low;

	if (kbarman_read_user(&code, address - sizeof(code))) {
		high = insn_read(code);
		low = insn_read(code + 2);
	} else if (kbarman_read_user((__le16 (*)[2])(code + 2), address - 2 * sizeof(code[0]))) {
		high = 0;
		low = insn_read(code + 2);
	} else {
		return call;
	}
	if ((low & 0xfff) == 0x0ef) {		/* jal ra */
		call.known = true;
		call.direct = true;
		call.target = address - 4 + insn_jal_offset(low);
	} else if ((low & 0x7fff) == 0x00e7) {	/* jalr ra; behind auipc REG, maybe of this REG */
		call.known = true;
		call.direct = (high & 0x7f) == 0x17 && RD(high) == RS1(low);
		call.target = address - 8 + (s32)(high & 0xfffff000) + ((s32)low >> 20);
	} else {				/* c.jalr */
		low = le16_to_cpu(code[3]);
		call.known = (low & 0xf07f) == 0x9002 && RD(low);
	}
	return call;
}

/*
 * True if the code at @pc is not of the function that returns to @recorded, but of one that it
 * called, and that returns to @link. Both calls may lead to code in front of @pc; that of the
 * function that @pc is in is nearest.
 */
static bool place_is_in_callee(unsigned long pc, unsigned long link, unsigned long recorded)
{
	struct call inner = insn_call_before(link), outer;

	if (!inner.direct || pc - inner.target >= KBARMAN_LEAF_BYTES)
		return false;
	outer = insn_call_before(recorded);
	return !outer.direct || pc - outer.target > pc - inner.target;
}

/*
 * ra has a return address that is in no record at the edges of a function, and everywhere in a
 * function that makes no calls. Such a function may have a frame without ra: then the word that
 * should be a return address is the caller's s0.
 */
void kbarman_user_place(struct kbarman_user_place *place, struct pt_regs *regs)
{
	unsigned long record[2];
	__le16 code[4];
	u32 insn;

	place->pc = regs->epc;
	place->frame = regs->s0;
	place->word = sizeof(long);
#ifdef CONFIG_COMPAT
	if ((regs->status & SR_UXL) == SR_UXL_32)
		place->word = sizeof(u32);
#endif
	place->behind = 2 * place->word;
	if (!kbarman_read_user(&code, place->pc))
		return;
	insn = insn_read(code);
	if (place_is_at_edge(insn, insn_read(code + (IS_LONG(insn) ? 2 : 1)))) {
		place->caller = regs->ra;
		return;
	}
	if (!kbarman_user_record(record, place->frame - place->behind, place->word))
		record[1] = 0;
	if (record[1] > place->frame && IS_ALIGNED(record[1], STACK_ALIGN) &&
	    !insn_call_before(record[1]).known) {
		place->caller = regs->ra;
		place->frame = record[1];
	} else if (place_is_in_callee(place->pc, regs->ra, record[1])) {
		place->caller = regs->ra;
	}
}
