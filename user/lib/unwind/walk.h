/* SPDX-License-Identifier: MIT */
/*
 * What one rule does with the registers of a walk (walker.c), and what the words of the stack say.
 * These functions are inlined: a chain of 13 frames is walked in half a microsecond.
 *
 * Rules were checked when their rows were made or taken; the values of registers and words may be
 * anything.
 */
#ifndef KB_LIB_UNWIND_WALK_H
#define KB_LIB_UNWIND_WALK_H

#include "unwind/sample.h"

#define SEARCHED	2048U	/* bytes after a place where SP was said to be saved */
#define NEAR		6	/* words that are looked at one by one */

struct walk {
	const struct kb_unwind_stack *stack;
	size_t near;		/* number of the word that was found last */
	const struct kb_unwind_machine *machine;
	struct kb_unwind_registers regs;
	uint64_t first;		/* registers that have the value with which the walk began */
	uint64_t *used;		/* those of them at which it looked */
	enum kb_unwind_end end;		/* set where a step returns false */
	uint64_t cfa;
	uint64_t scratch;	/* registers that the frame may still have: its callee, which was
				 * interrupted, need not preserve them */
	bool no_index;		/* the CFA lacks an index that has no value */
};

static inline bool stop(struct walk *walk, enum kb_unwind_end end)
{
	walk->end = end;
	return false;
}

static inline uint64_t cut(const struct walk *walk, uint64_t address)
{
	return walk->machine->word == 4 ? (uint32_t)address : address;
}

/*
 * The last word that was kept at @address or below; the first one if there is none. It is usually
 * near the one that was found before.
 */
static inline const struct kb_unwind_word *find_word(struct walk *walk, uint64_t address)
{
	const struct kb_unwind_word *first = walk->stack->words, *at = first + walk->near;
	const struct kb_unwind_word *last = first + walk->stack->nr - 1;

	for (unsigned int i = 0; i < NEAR && walk->stack->nr; i++) {
		if (at->address > address && at > first) {
			at--;
		} else if (at < last && at[1].address <= address) {
			at++;
		} else {
			walk->near = (size_t)(at - first);
			return at;
		}
	}
	at = first;
	for (size_t left = walk->stack->nr; left > 1;) {
		size_t half = left / 2;

		at = at[half].address <= address ? at + half : at;
		left -= half;
	}
	walk->near = (size_t)(at - first);
	return at;
}

static inline bool is_in_stack(const struct kb_unwind_stack *stack, uint64_t address)
{
	return address >= stack->low && address < stack->high;
}

static inline bool read_word(struct walk *walk, uint64_t address, uint64_t *word)
{
	const struct kb_unwind_stack *stack = walk->stack;
	const struct kb_unwind_word *kept = find_word(walk, address);

	if (stack->nr && kept->address == address) {
		*word = kept->word;
		return true;
	}
	*word = 0;
	if (address % walk->machine->word || !is_in_stack(stack, address))
		return stop(walk, KB_UNWIND_OUTSIDE);
	return true;
}

/* The value of a register, which it may have lost. */
static inline uint64_t look(const struct walk *walk, unsigned int reg)
{
	*walk->used |= walk->first & UINT64_C(1) << reg;
	return walk->regs.value[reg];
}

static inline bool read_register(struct walk *walk, unsigned int reg, uint64_t *value)
{
	*value = look(walk, reg);
	/* cppcheck-suppress knownConditionTrueFalse ; stop() says why, and is false */
	return walk->regs.known >> reg & 1 || stop(walk, KB_UNWIND_NO_REGISTER);
}

/*
 * Some functions move SP while they work, and their tables still count from where it was: the
 * vectorized ones of OpenSSL. There a word after @address has the caller's SP. It points to a
 * return address, so the words of the stack tell which one it is.
 */
static inline uint64_t find_saved_sp(struct walk *walk, uint64_t address)
{
	const struct kb_unwind_stack *stack = walk->stack;
	const struct kb_unwind_word *at = find_word(walk, address);
	const struct kb_unwind_word *end = stack->words + stack->nr;
	uint64_t word;

	for (; at < end && at->address < address + SEARCHED; at++)
		if (at->address > address && at->word > at->address && at->word < stack->high &&
		    read_word(walk, at->word, &word) && word &&
		    !is_in_stack(stack, word))
			return at->word;
	return 0;
}

/*
 * Assembly code has the caller's SP in a register that a called function need not preserve, and
 * calls others of its own that do. What such a register has is believed if the caller's address is
 * where it says.
 */
static inline bool read_cfa_base(struct walk *walk, const struct kb_unwind_step *step,
				 uint64_t *value)
{
	uint64_t cfa, pc;

	if (walk->regs.known >> step->base & 1 || !(walk->scratch >> step->base & 1))
		return read_register(walk, step->base, value);
	*value = look(walk, step->base);
	cfa = cut(walk, *value + (int64_t)step->offset);
	if (!walk->machine->link && cfa > walk->regs.value[walk->machine->sp] &&
	    read_word(walk, cfa - walk->machine->word, &pc) && pc)
		return true;
	return stop(walk, KB_UNWIND_NO_REGISTER);
}

/* Without the index, the word is one of those after. */
static inline bool load_cfa(struct walk *walk)
{
	uint64_t value = 0, sp = walk->regs.value[walk->machine->sp];

	if (!walk->no_index && !read_word(walk, walk->cfa, &value) && walk->cfa >= sp)
		return false;
	walk->cfa = value ? value : find_saved_sp(walk, walk->cfa);
	walk->no_index = false;
	return true;
}

/* One step to the CFA. */
static inline bool move_cfa(struct walk *walk, const struct kb_unwind_step *step)
{
	uint64_t value = 0;

	switch (step->what) {
	case KB_UNWIND_CFA_BASE:
		if (!read_cfa_base(walk, step, &value))
			return false;
		walk->cfa = value + (int64_t)step->offset;
		walk->no_index = false;
		break;
	case KB_UNWIND_CFA_INDEX:
		walk->no_index = !read_register(walk, step->base, &value);
		walk->cfa += value * step->count;
		break;
	case KB_UNWIND_CFA_LOAD:
		if (!load_cfa(walk))
			return false;
		walk->cfa += (int64_t)step->offset;
		break;
	default:	/* KB_UNWIND_CFA_PLT */
		walk->cfa += (uint64_t)((walk->regs.value[KB_UNWIND_PC] & step->base) >=
					step->target) << step->count;
	}
	walk->cfa = cut(walk, walk->cfa);
	return true;
}

/* The value of a register in the caller, for a step that gives it one. */
static inline bool find_value(struct walk *walk, const struct kb_unwind_step *step, uint64_t *value)
{
	switch (step->what) {
	case KB_UNWIND_AT:
		return read_word(walk, cut(walk, walk->cfa + (int64_t)step->offset), value);
	case KB_UNWIND_VALUE:
		*value = cut(walk, walk->cfa + (int64_t)step->offset);
		return true;
	case KB_UNWIND_AT_BASE:
		return read_register(walk, step->base, value) &&
		       read_word(walk, cut(walk, *value + (int64_t)step->offset), value);
	default:	/* KB_UNWIND_VALUE_BASE */
		if (!read_register(walk, step->base, value))
			return false;
		*value = cut(walk, *value + (int64_t)step->offset);
		return true;
	}
}

/* What the steps of a rule find, before any register changes. */
struct found {
	uint64_t known, lost;	/* registers: a bit for each */
	uint64_t value[KB_UNWIND_REGISTERS];
};

/*
 * Whether the place of a register is below SP. The function has taken it from there, or is about to
 * return, and its table does not say so: compilers leave that out.
 */
static inline bool is_below_sp(const struct walk *walk, const struct kb_unwind_step *step)
{
	return step->what == KB_UNWIND_AT &&
	       cut(walk, walk->cfa + (int64_t)step->offset) < walk->regs.value[walk->machine->sp];
}

/*
 * A register other than the caller's address may be lost: whoever needs it will say so. Returns
 * false if the caller's address can't be found.
 */
static inline bool run_steps(struct walk *walk, const struct kb_unwind_step *rule,
			     struct found *found)
{
	const struct kb_unwind_step *step = rule + 1, *end = step + rule->count;

	for (; step < end && step->what <= KB_UNWIND_CFA_PLT; step++)
		if (!move_cfa(walk, step))
			return false;
	if (walk->no_index)
		return stop(walk, KB_UNWIND_NO_REGISTER);
	for (; step < end; step++) {
		uint64_t bit = UINT64_C(1) << step->target;

		if (step->what == KB_UNWIND_UNDEFINED && step->target == rule->target)
			return stop(walk, KB_UNWIND_WHOLE);
		if (step->what < KB_UNWIND_UNDEFINED &&
		    find_value(walk, step, &found->value[step->target]))
			found->known |= bit;
		else if (is_below_sp(walk, step))
			continue;	/* it keeps its value */
		else if (step->target == rule->target)
			return false;
		else
			found->lost |= bit;
	}
	return true;
}

/* The address at which the caller goes on. */
static inline bool find_pc(struct walk *walk, const struct kb_unwind_step *rule,
			   const struct found *found, uint64_t *pc)
{
	if (found->known >> rule->target & 1)
		*pc = found->value[rule->target];
	else if (!read_register(walk, rule->target, pc))
		return false;
	if (rule->base & KB_UNWIND_SIGNED)
		*pc &= ~walk->machine->signature;
	*pc &= ~(uint64_t)walk->machine->pc_flags;
	/* cppcheck-suppress knownConditionTrueFalse ; as above */
	return *pc || stop(walk, KB_UNWIND_ZERO);
}

static inline void set(struct walk *walk, unsigned int reg, uint64_t value)
{
	walk->regs.value[reg] = value;
	walk->regs.known |= UINT64_C(1) << reg;
	walk->first &= ~(UINT64_C(1) << reg);
}

#endif
