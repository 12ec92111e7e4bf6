/* SPDX-License-Identifier: MIT */
/*
 * Chains of stacks that were seen before: most tasks wait again and again at the same places. A stack
 * is the same if its bytes are, but for registers at which the walk did not look, and if its task has
 * the same mappings as then. All bytes are compared, so no chain is ever that of another stack.
 */
#ifndef KB_LIB_SYM_UNWIND_MEMO_H
#define KB_LIB_SYM_UNWIND_MEMO_H

#include <stddef.h>
#include <stdint.h>

#include "unwind/sparse.h"

#define KB_UNWIND_MEMO_STACKS	4096U		/* at most these are kept, */
#define KB_UNWIND_MEMO_BYTES	(8U << 20)	/* with their chains */

struct kb_unwind_memo;

/* A sparse stack, and whose it is. */
struct kb_unwind_seen {
	uint32_t task;		/* a process */
	uint64_t changes;	/* of its mappings: kb_spaces_changes() */
	const struct kb_unwind_machine *machine;
	const void *data;
	size_t size;		/* bytes, a multiple of 4 */
	/* kb_unwind_memo_find() sets these. */
	struct kb_unwind_sparse_registers registers;
	uint64_t hash;
};

/* Returns 0 or -ENOMEM. */
int kb_unwind_memo_create(struct kb_unwind_memo **out);
void kb_unwind_memo_destroy(struct kb_unwind_memo *memo);

/* The chain of @stack, which holds until the next one is kept; NULL: it is not known. */
const struct kb_unwind_chain *kb_unwind_memo_find(const struct kb_unwind_memo *memo,
						  struct kb_unwind_seen *stack);

/*
 * Keep a copy of @chain for @stack, which was not found and is a valid one. It takes the place of
 * another stack. Without memory nothing is kept.
 */
void kb_unwind_memo_keep(struct kb_unwind_memo *memo, const struct kb_unwind_seen *stack,
			 const struct kb_unwind_chain *chain);

#endif
