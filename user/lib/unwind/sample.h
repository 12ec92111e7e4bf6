/* SPDX-License-Identifier: MIT */
/* What a walk over a stack begins with, and the chain of frames that it gives. */
#ifndef KB_LIB_UNWIND_SAMPLE_H
#define KB_LIB_UNWIND_SAMPLE_H

#include "unwind/rows.h"

/* Registers by their DWARF numbers, and the PC at KB_UNWIND_PC. */
struct kb_unwind_registers {
	uint64_t known;		/* a bit for each that has a value */
	uint64_t value[KB_UNWIND_REGISTERS];
};

/* A word of the stack, which is as long as an address of the machine. */
struct kb_unwind_word {
	uint64_t address, word;
};

/*
 * The words that were kept, sorted by address. Of the addresses from low to high, all words were
 * looked at: one that was not kept is read as 0. Nothing is known of words elsewhere.
 */
struct kb_unwind_stack {
	const struct kb_unwind_word *words;
	size_t nr;
	uint64_t low, high;
	const struct kb_unwind_machine *machine;	/* NULL: that of the first rows */
	bool whole;		/* the stack ends at `high`, or less than 4 words below it */
};

/* How a chain ended. The order is that of kb_unwind_end_text(). */
enum kb_unwind_end {
	KB_UNWIND_WHOLE,	/* the outermost function: its table says that it has no caller */
	KB_UNWIND_ZERO,		/* the caller's address is 0: a start without a table, or a word
				 * that was not kept */
	KB_UNWIND_LIMIT,	/* there is no room for more frames */
	KB_UNWIND_OUTSIDE,	/* a word is needed that was not looked at */
	KB_UNWIND_NO_ROWS,	/* nobody knows what code is at that address */
	KB_UNWIND_REFUSED,	/* the address has no rule; the reason says why */
	KB_UNWIND_NO_REGISTER,	/* a register is needed that has no value */
	KB_UNWIND_NO_PROGRESS,	/* the caller's frame would not be above its callee's */
	KB_UNWIND_ENDS,
};

struct kb_unwind_frame {
	uint64_t pc;		/* of a caller: where it goes on */
	bool exact;		/* it was interrupted there; others are looked up at pc - 1 */
};

/* The caller owns the frames. */
struct kb_unwind_chain {
	struct kb_unwind_frame *frames;	/* innermost first */
	uint32_t max, nr;		/* room for frames, and how many there are */
	enum kb_unwind_end end;
	enum kb_unwind_reason reason;	/* if the end is KB_UNWIND_REFUSED */
	uint64_t sp;			/* of the last frame */
	uint64_t used;			/* registers at which the walk looked, a bit for each, beside SP and
					 * PC: with other values of the others the chain is the same */
};

/* The address by which a frame is named, as kb_chain_lookup() does. */
static inline uint64_t kb_unwind_lookup(const struct kb_unwind_frame *frame)
{
	return frame->exact ? frame->pc : frame->pc - 1;
}

#endif
