// SPDX-License-Identifier: MIT
/*
 * From frame to frame. Registers that a called function does not preserve are forgotten, so none of
 * them is taken for its caller's.
 */
#include <elf.h>

#include "unwind/walk.h"
#include "unwind/walker.h"

#define FRAME_MAX	512U	/* bytes of a frame of assembly code */

/*
 * The caller's SP. The lazy-binding stub of ld.so (arm64, glibc up to 2.36) has a wrong table: its CFA
 * lacks the two words that the PLT pushed. It shows in a link register that is saved at the CFA or
 * above.
 */
static uint64_t find_caller_sp(const struct walk *walk, const struct kb_unwind_step *rule)
{
	const struct kb_unwind_machine *machine = walk->machine;
	const int32_t two_words = 2 * machine->word;
	uint64_t sp = walk->cfa - machine->above_sp;

	if (machine->link)
		for (const struct kb_unwind_step *step = rule + rule->count; step > rule; step--)
			if (step->what == KB_UNWIND_AT && step->target == rule->target &&
			    step->offset >= 0)
				sp += (uint64_t)step->offset / two_words * two_words + two_words;
	return cut(walk, sp);
}

/* Make the registers those of the caller. @exact: the frame was interrupted. */
static bool leave(struct walk *walk, const struct kb_unwind_step *rule, bool exact)
{
	const struct kb_unwind_machine *machine = walk->machine;
	struct kb_unwind_registers *regs = &walk->regs;
	uint64_t old_sp = regs->value[machine->sp], sp, pc;
	struct found found;

	found.known = found.lost = 0;
	if (!run_steps(walk, rule, &found) || !find_pc(walk, rule, &found, &pc))
		return false;
	sp = found.known >> machine->sp & 1 ? found.value[machine->sp] : find_caller_sp(walk, rule);
	/* A handler may have a stack of its own. A function that was interrupted may have none. */
	if (!(rule->base & KB_UNWIND_SIGNAL) && (sp < old_sp || (sp == old_sp && !exact)))
		return stop(walk, KB_UNWIND_NO_PROGRESS);
	walk->scratch = exact ? regs->known & ~(uint64_t)machine->preserved : 0;
	regs->known &= machine->preserved & ~found.lost;
	for (uint64_t left = found.known; left; left &= left - 1)
		set(walk, __builtin_ctzll(left), found.value[__builtin_ctzll(left)]);
	set(walk, machine->sp, sp);
	set(walk, KB_UNWIND_PC, pc);
	return true;
}

/* ---- code without a table ---- */

/* The caller's address as the rule of @pc finds it with the registers that @walk has there. */
static bool has_caller(const struct walk *walk, uint64_t pc, kb_unwind_find *find, void *closure)
{
	uint64_t bias = 0, caller;
	const struct kb_unwind_rows *rows = find(closure, pc - 1, &bias);
	const struct kb_unwind_step *rule = rows ? kb_unwind_rule_at(rows, pc - 1 - bias) : NULL;
	struct walk copy = *walk;
	struct found found = { .known = 0 };

	if (!rule || rule->what != KB_UNWIND_RULE)
		return true;
	/* Where its address would be there may be a pointer into the stack. */
	return (run_steps(&copy, rule, &found) && find_pc(&copy, rule, &found, &caller) &&
		!is_in_stack(walk->stack, caller)) ||
	       copy.end == KB_UNWIND_WHOLE;
}

/*
 * Set SP to the first place with which the caller at @pc has a caller: from @first bytes above @from
 * on, in steps of @step bytes. False: there is none.
 */
static bool find_sp(struct walk *walk, uint64_t pc, uint64_t from, unsigned int first,
		    unsigned int step, kb_unwind_find *find, void *closure)
{
	for (unsigned int bytes = first; bytes <= FRAME_MAX; bytes += step) {
		set(walk, walk->machine->sp, cut(walk, from + bytes));
		if (has_caller(walk, pc, find, closure))
			return true;
	}
	return false;
}

/*
 * Assembly code with a frame: the frame register points to a record, and the caller's SP is not far
 * above it. It is the first one with which the caller has a caller.
 */
static bool leave_record(struct walk *walk, uint64_t record, uint64_t pc, kb_unwind_find *find,
			 void *closure)
{
	const struct kb_unwind_machine *machine = walk->machine;
	const unsigned int step = 2U * machine->word;
	uint64_t value;

	if (!read_word(walk, record, &value))
		return false;
	set(walk, machine->frame, value);
	return find_sp(walk, pc, record, step, step, find, closure);
}

/*
 * Leave code that nobody knows, or a caller without a table: just-in-time compilers keep a frame
 * pointer, and so does the code of their own that they have in a library. The word that would be the
 * caller's address was kept, so it points to code, or into the stack.
 */
static bool leave_by_frame(struct walk *walk)
{
	const struct kb_unwind_machine *machine = walk->machine;
	uint64_t sp, record, frame, pc;

	if (!machine || !machine->frame || !read_register(walk, machine->frame, &record))
		return false;
	sp = walk->regs.value[machine->sp];
	if (record < sp || !read_word(walk, record, &frame) ||
	    !read_word(walk, record + machine->word, &pc) || !pc || is_in_stack(walk->stack, pc))
		return false;
	walk->regs.known &= machine->preserved;
	walk->scratch = 0;
	set(walk, machine->frame, frame);
	set(walk, machine->sp, record + 2U * machine->word);
	set(walk, KB_UNWIND_PC, pc & ~(machine->signature | machine->pc_flags));
	return true;
}

/*
 * Where calls put the caller's address onto the stack, assembly code may have pushed registers
 * since: GMP's. The address is the first one with which the caller has a caller.
 */
static bool leave_pushed(struct walk *walk, kb_unwind_find *find, void *closure)
{
	const struct kb_unwind_machine *machine = walk->machine;
	uint64_t sp = walk->regs.value[machine->sp], end = sp + FRAME_MAX, pc;

	walk->regs.known &= machine->preserved;
	walk->scratch = 0;
	for (; sp < end && read_word(walk, sp, &pc); sp += machine->word) {
		if (!pc || is_in_stack(walk->stack, pc))
			continue;
		set(walk, machine->sp, sp + machine->word);
		set(walk, KB_UNWIND_PC, pc);
		if (has_caller(walk, pc, find, closure))
			return true;
	}
	return false;
}

/*
 * A function that calls nothing may have a frame all the same. The caller's SP is the first one with
 * which the caller at @pc has a caller. If there is none, the function has no frame.
 */
static void leave_frame(struct walk *walk, uint64_t pc, kb_unwind_find *find, void *closure)
{
	const struct kb_unwind_machine *machine = walk->machine;
	uint64_t low = walk->regs.value[machine->sp];

	if (!find_sp(walk, pc, low, 0, machine->word, find, closure))
		set(walk, machine->sp, low);
}

/*
 * Leave a function that no table describes, but the CPU was in it: a stub of the PLT, a function of
 * the vdso, assembly code. Most of them call nothing, so the caller's address is in its register.
 */
static bool leave_unknown(struct walk *walk, kb_unwind_find *find, void *closure)
{
	const struct kb_unwind_machine *machine = walk->machine;
	uint64_t pc, record, saved;
	bool has_record;

	if (!machine->link)
		return leave_pushed(walk, find, closure);
	if (!read_register(walk, machine->link, &pc))
		return false;
	pc &= ~(machine->signature | machine->pc_flags);
	if (!pc)
		return false;
	record = look(walk, machine->frame);
	has_record = machine->frame && record >= walk->regs.value[machine->sp] &&
		     read_word(walk, record + machine->word, &saved) &&
		     (saved & ~machine->signature) == pc;
	if (has_record && !leave_record(walk, record, pc, find, closure))
		return false;
	walk->regs.known &= machine->preserved | UINT64_C(1) << machine->sp;
	set(walk, KB_UNWIND_PC, pc);
	if (!has_record)
		leave_frame(walk, pc, find, closure);
	return true;
}

/* Programs begin where their stack ends, and ld.so without a table. */
static bool is_start(const struct walk *walk, const struct kb_unwind_step *no_rule)
{
	uint64_t sp = walk->regs.value[walk->machine->sp], high = walk->stack->high;

	return walk->stack->whole && no_rule->offset == KB_UNWIND_UNCOVERED && sp <= high &&
	       high - sp < 4U * walk->machine->word;
}

/*
 * No call returns to where a function begins: makecontext() has put the address there, as the
 * caller of the first function of a stack. The frame before it is the last one.
 */
static bool is_context(const struct kb_unwind_rows *rows, const struct kb_unwind_step *no_rule,
		       const struct kb_unwind_frame *frame, uint64_t bias)
{
	struct kb_unwind_bounds bounds;

	return !frame->exact && no_rule->offset == KB_UNWIND_UNCOVERED &&
	       kb_unwind_function_at(rows, frame->pc - bias, &bounds) &&
	       bounds.start == frame->pc - bias;
}

/* The rule of @frame; NULL: there is none. Sets the end of the chain. */
static const struct kb_unwind_step *find_rule(struct kb_unwind_chain *chain, struct walk *walk,
					      const struct kb_unwind_frame *frame,
					      kb_unwind_find *find, void *closure)
{
	uint64_t address = kb_unwind_lookup(frame), bias = 0;
	const struct kb_unwind_rows *rows = find(closure, address, &bias);
	const struct kb_unwind_step *rule;

	walk->end = KB_UNWIND_NO_ROWS;
	if (!rows)
		return NULL;
	walk->machine = rows->machine;
	rule = kb_unwind_rule_at(rows, address - bias);
	if (rule->what == KB_UNWIND_RULE)
		return rule;
	walk->end = is_start(walk, rule) ? KB_UNWIND_WHOLE : KB_UNWIND_REFUSED;
	if (is_context(rows, rule, frame, bias)) {
		walk->end = KB_UNWIND_WHOLE;
		chain->nr--;
	}
	chain->reason = rule->offset;
	return NULL;
}

/* Leave a frame that has no rule. False: there is no way. */
static bool leave_without(struct walk *walk, const struct kb_unwind_chain *chain, bool exact,
			  kb_unwind_find *find, void *closure)
{
	if (walk->end == KB_UNWIND_NO_ROWS)
		return leave_by_frame(walk);
	if (walk->end != KB_UNWIND_REFUSED || chain->reason != KB_UNWIND_UNCOVERED)
		return false;
	if (exact)
		return leave_unknown(walk, find, closure);
	return leave_by_frame(walk) &&
	       has_caller(walk, walk->regs.value[KB_UNWIND_PC], find, closure);
}

/* Whether the CPU was at the first instruction of a function. */
static bool is_at_entry(const struct walk *walk, kb_unwind_find *find, void *closure)
{
	uint64_t pc = walk->regs.value[KB_UNWIND_PC], bias = 0;
	const struct kb_unwind_rows *rows = find(closure, pc, &bias);
	struct kb_unwind_bounds bounds;

	return rows && kb_unwind_function_at(rows, pc - bias, &bounds) && bounds.start == pc - bias;
}

/*
 * Rules of .ARM.exidx hold after a function's prologue and before its end. At the first
 * instruction they do not, and where they find no address.
 */
static bool leave_interrupted(struct walk *walk, const struct kb_unwind_step *rule,
			      kb_unwind_find *find, void *closure)
{
	if (walk->machine->elf != EM_ARM)
		return leave(walk, rule, true);
	return (is_at_entry(walk, find, closure) && leave_unknown(walk, find, closure)) ||
	       leave(walk, rule, true) ||
	       (walk->end == KB_UNWIND_ZERO && leave_unknown(walk, find, closure));
}

void kb_unwind_walk(struct kb_unwind_chain *chain, const struct kb_unwind_registers *start,
		    const struct kb_unwind_stack *stack, kb_unwind_find *find, void *closure)
{
	struct walk walk = {
		.stack = stack, .machine = stack->machine, .regs = *start, .first = ~UINT64_C(0),
		.used = &chain->used,
	};
	bool exact = true;

	chain->nr = 0;
	chain->used = 0;
	chain->sp = 0;
	for (;;) {
		struct kb_unwind_frame *frame = &chain->frames[chain->nr++];
		const struct kb_unwind_step *rule;
		enum kb_unwind_end end;

		frame->pc = walk.regs.value[KB_UNWIND_PC];
		frame->exact = exact;
		rule = find_rule(chain, &walk, frame, find, closure);
		if (walk.machine)
			chain->sp = walk.regs.value[walk.machine->sp];
		end = walk.end;
		if (rule && !(exact ? leave_interrupted(&walk, rule, find, closure) :
				      leave(&walk, rule, false)))
			break;
		if (!rule && !leave_without(&walk, chain, exact, find, closure)) {
			walk.end = end;
			break;
		}
		walk.end = KB_UNWIND_LIMIT;
		if (chain->nr == chain->max)
			break;
		exact = rule && rule->base & KB_UNWIND_SIGNAL;
	}
	chain->end = walk.end;
}

const char *kb_unwind_end_text(enum kb_unwind_end end)
{
	static const char *const texts[KB_UNWIND_ENDS] = {
		"whole", "zero", "limit", "outside of the stack", "unknown code", "no rule",
		"a register without a value", "no progress",
	};

	return end < KB_UNWIND_ENDS ? texts[end] : "unknown";
}
