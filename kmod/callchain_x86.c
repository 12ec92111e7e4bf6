// SPDX-License-Identifier: GPL-2.0-only
/* Call chains on x86: the kernel's unwinder for kernel frames, %rbp for user frames. */
#include <linux/mm.h>
#include <linux/ptrace.h>
#include <linux/sched.h>
#include <linux/string.h>
#include <asm/processor.h>
#include <asm/unwind.h>

#include "callchain.h"
#include "user_memory.h"

const u32 kbarman_callchain_features = KBARMAN_FEATURE_CHAIN_USER | KBARMAN_FEATURE_CHAIN_STACK |
				       KBARMAN_FEATURE_CHAIN_KERNEL;

/* True if the machine saved these registers. Software events make up theirs. */
static bool regs_are_real(const struct pt_regs *regs)
{
	return regs->flags & X86_EFLAGS_FIXED;
}

void kbarman_frames_kernel(struct kbarman_frames *frames, struct pt_regs *regs)
{
	struct unwind_state state;
	unsigned long address;

	if (!regs) {
		unwind_start(&state, current, NULL, NULL);
	} else if (regs_are_real(regs)) {
		if (!kbarman_frames_add(frames, regs->ip))
			return;
		unwind_start(&state, current, regs, NULL);
	} else {
		unwind_start(&state, current, NULL, (void *)regs->sp);
	}
	for (; !unwind_done(&state); unwind_next_frame(&state)) {
		address = unwind_get_return_address(&state);
		if (!address || !kbarman_frames_add(frames, address))
			return;
	}
}

/*
 * In an NMI, the memory of the next task may already be mapped, or none. This compares CR3 itself,
 * because nmi_uaccess_okay() can't be called from modules.
 */
bool kbarman_user_is_here(void)
{
	return read_cr3_pa() == __pa(current->mm->pgd);
}

#define CALL_BYTES	6

/*
 * True if @code can end with a call: of rel32, *reg, or *mem with 0, 1 or 4 bytes of displacement.
 */
static bool code_is_call(const u8 code[CALL_BYTES])
{
	return code[1] == 0xe8 || code[4] == 0xff || code[3] == 0xff || code[2] == 0xff ||
	       code[0] == 0xff;
}

static s32 code_rel32(const u8 *code)
{
	s32 value;

	memcpy(&value, code, sizeof(value));
	return value;
}

/* True if @code, which ends at @address, ends with a call of the small function that @pc is in. */
static bool code_is_call_of(const u8 code[CALL_BYTES], unsigned long address, unsigned long pc)
{
	return code[1] == 0xe8 &&
	       pc - (address + (s32)code_rel32(code + 2)) < KBARMAN_LEAF_BYTES;
}

static unsigned long stack_read_word(unsigned long address, unsigned int word)
{
	u64 value = 0;

	if (word == sizeof(u32) ? !kbarman_read_user((u32 *)&value, address) :
				  !kbarman_read_user(&value, address))
		return 0;
	return value;
}

/*
 * Returns the return address if it is in no frame record, else 0.
 *
 * Before a function has made its frame, and after it has removed its frame, the return address is
 * on top of the stack: at endbr, push %rbp and ret. At mov %rsp,%rbp it is one word above the top,
 * behind the saved %rbp. It is on top of the stack everywhere in a function that makes neither
 * calls nor a frame. Any other word could look like a return address there, so a call of that very
 * function must precede the address.
 */
static unsigned long place_caller_without_frame(const struct kbarman_user_place *place,
						unsigned long stack)
{
	u8 code[4], call[CALL_BYTES];
	unsigned long caller;
	bool at_edge = false;

	if (!kbarman_read_user(&code, place->pc))
		return 0;
	if (code[0] == 0x55 || code[0] == 0xc3 ||
	    (code[0] == 0xf3 && code[1] == 0x0f && code[2] == 0x1e)) {
		at_edge = true;
	} else if (place->word == sizeof(u64) ?
			   code[0] == 0x48 && code[1] == 0x89 && code[2] == 0xe5 :
			   code[0] == 0x89 && code[1] == 0xe5) {
		at_edge = true;
		stack += place->word;
	}
	caller = stack_read_word(stack, place->word);
	if (!caller || !kbarman_read_user(&call, caller - CALL_BYTES))
		return 0;
	/*
	 * Code without frame pointers uses the instructions of the edges elsewhere, too. So at an
	 * edge some call must precede the address.
	 */
	if (at_edge ? code_is_call(call) : code_is_call_of(call, caller, place->pc))
		return caller;
	return 0;
}

void kbarman_user_place(struct kbarman_user_place *place, struct pt_regs *regs)
{
	place->pc = regs->ip;
	place->frame = regs->bp;
	place->word = sizeof(long);
#ifdef CONFIG_X86_64
	if (regs->cs == __USER32_CS) {
		place->word = sizeof(u32);
		place->frame = (u32)regs->bp;
	}
#endif
	place->caller = place_caller_without_frame(place, regs->sp);
}

unsigned long kbarman_plain_address(unsigned long address)
{
	return address;
}
