/* SPDX-License-Identifier: MIT */
/*
 * unwind/: call chains without frame pointers. The tables of a file (functions.h) are compiled to
 * rows (rows.h), and the walker follows them through the words that were kept of a stack. All of it
 * is pure: it opens no file, and any table may be hostile.
 *
 * Unwinds the stack of one sample: from registers and a sparse stack to the chain of functions
 * that called each other. A sparse stack has the words that can matter: those that point into
 * code or into the stack itself.
 */
#ifndef KB_LIB_UNWIND_WALKER_H
#define KB_LIB_UNWIND_WALKER_H

#include "unwind/sample.h"

/*
 * The rows of the file that is mapped at @address, and in *@bias what is added to addresses of
 * the file there. NULL: nothing is known.
 */
typedef const struct kb_unwind_rows *kb_unwind_find(void *closure, uint64_t address,
						    uint64_t *bias);

/*
 * Fill @chain, which has room for one frame at least. Nothing is allocated, and the time is
 * limited by the room for frames.
 */
void kb_unwind_walk(struct kb_unwind_chain *chain, const struct kb_unwind_registers *start,
		    const struct kb_unwind_stack *stack, kb_unwind_find *find, void *closure);

/* A few words for @end. */
const char *kb_unwind_end_text(enum kb_unwind_end end);

#endif
