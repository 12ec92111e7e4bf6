// SPDX-License-Identifier: GPL-2.0-only
/* Call chains on x86: the kernel's unwinder for kernel frames, %rbp for user frames. */
#include <linux/mm.h>
#include <linux/ptrace.h>
#include <linux/sched.h>
#include <linux/sched/task_stack.h>
#include <linux/string.h>
#include <asm/processor.h>
#include <asm/unwind.h>

#include "stacks/callchain.h"
#include "stacks/frames.h"
#include "stacks/known_chain.h"
#include "stacks/user_words.h"

const u32 kbarman_callchain_features = KBARMAN_FEATURE_CHAIN_USER | KBARMAN_FEATURE_CHAIN_STACK |
				       KBARMAN_FEATURE_CHAIN_KERNEL;

/* True if the machine saved these registers. Software events make up theirs. */
static bool regs_are_real(const struct pt_regs *regs)
{
	return regs->flags & X86_EFLAGS_FIXED;
}

/* The current task's stack from @begin on. False: @begin is on another one. */
static bool stack_of_task(struct kbarman_known_stack *stack, void *begin)
{
	void *low = task_stack_page(current);

	*stack = (struct kbarman_known_stack) { begin, low + THREAD_SIZE };
	return begin >= low && begin < low + THREAD_SIZE;
}

/* Add the chain of @stack, if it was seen before. */
static bool add_known(struct kbarman_frames *frames, const struct kbarman_known_stack *stack)
{
	const void *iterator = (void *)frames->iterator;
	const struct kbarman_known_chain *chain = kbarman_known_find(frames->known, stack, iterator);
	unsigned int nr;

	if (!chain) {
		kbarman_known_begin(frames->known, iterator);
		return false;
	}
	nr = min(chain->nr - chain->first, frames->max - frames->nr);
	memcpy(frames->addresses + frames->nr, chain->addresses + chain->first,
	       nr * sizeof(chain->addresses[0]));
	frames->nr += nr;
	return true;
}

/* Where the frame of @state has its return address; NULL: an interrupt saved it. */
static const unsigned long *return_address_at(const struct unwind_state *state)
{
#ifdef CONFIG_UNWINDER_ORC
	return state->regs || state->signal ? NULL : (const unsigned long *)state->sp - 1;
#else
	return NULL;
#endif
}

/* Whether the next frame is that of user code. */
static bool is_at_user_code(struct unwind_state *state)
{
	struct pt_regs *regs = unwind_get_entry_regs(state, NULL);

	return regs && user_mode(regs);
}

void kbarman_frames_kernel(struct kbarman_frames *frames, struct pt_regs *regs)
{
	struct kbarman_known_stack stack;
	struct unwind_state state;
	unsigned long address;
	/* The walk begins with the caller of this function. */
	bool keeps = frames->known && stack_of_task(&stack, __builtin_frame_address(0));

	if (keeps && add_known(frames, &stack))
		return;
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
		if (!address) {
			keeps = keeps && is_at_user_code(&state);
			break;
		}
		if (!kbarman_frames_add(frames, address))
			return;
		keeps = keeps && kbarman_known_add(frames->known, &stack, return_address_at(&state),
						   address, frames->skip);
	}
	if (keeps && !unwind_error(&state))
		kbarman_known_keep(frames->known, &stack);
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

/* True if a call with 32 bits of displacement reaches from @caller to @pc. */
static bool is_near(unsigned long caller, unsigned long pc)
{
	long distance = pc - caller;

	return distance == (s32)distance;
}

/* True if @code, which ends at @address, ends with a call of the small function that @pc is in. */
static bool code_is_call_of(const u8 code[CALL_BYTES], unsigned long address, unsigned long pc)
{
	return code[1] == 0xe8 &&
	       pc - (address + (s32)code_rel32(code + 2)) < KBARMAN_LEAF_BYTES;
}

static bool code_is(u32 code, u32 bytes, unsigned int nr)
{
	return !((code ^ bytes) & GENMASK(nr * 8 - 1, 0));
}

/* True before a function has made its frame, and after it has removed its frame. */
static bool code_is_on_top(u32 code)
{
	return code_is(code, 0x55, 1) ||	/* push %rbp */
	       code_is(code, 0xc3, 1) ||	/* ret */
	       code_is(code, 0x1e0ff3, 3);	/* endbr */
}

/* True at mov %rsp,%rbp */
static bool code_makes_frame(u32 code, unsigned int word)
{
	return word == sizeof(u64) ? code_is(code, 0xe58948, 3) : code_is(code, 0xe589, 2);
}

static unsigned long stack_get_word(unsigned long address, unsigned int word)
{
	unsigned long value;
	u32 half;

	if (word == sizeof(value))
		return kbarman_user_get(&value, address) ? value : 0;
	return kbarman_user_get(&half, address) ? half : 0;
}

/* What is in front of @address. */
static bool code_get_call(u8 code[CALL_BYTES], unsigned long address)
{
	return kbarman_user_get((u16 *)code, address - CALL_BYTES) &&
	       kbarman_user_get((u32 *)(code + 2), address - 4);
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
	u8 call[CALL_BYTES] __aligned(4);
	unsigned long caller;
	bool on_top, inside;
	u32 code;

	if (!kbarman_user_get(&code, place->pc))
		return 0;
	on_top = code_is_on_top(code);
	inside = !on_top && !code_makes_frame(code, place->word);
	caller = stack_get_word(on_top || inside ? stack : stack + place->word, place->word);
	/* Most words that are no return address are farther away than such a call reaches. */
	if (inside && !is_near(caller, place->pc))
		return 0;
	if (!caller || !code_get_call(call, caller))
		return 0;
	/*
	 * Code without frame pointers uses the instructions of the edges elsewhere, too. So at an
	 * edge some call must precede the address.
	 */
	if (inside ? code_is_call_of(call, caller, place->pc) : code_is_call(call))
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
