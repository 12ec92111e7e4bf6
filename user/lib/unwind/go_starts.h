/* SPDX-License-Identifier: MIT */
/*
 * Where the stacks of Go programs begin. These have a table of their own, .gopclntab, also where
 * they were stripped; it says which functions have no caller: runtime.goexit, to which the function
 * of each goroutine returns, and those of threads. runtime.mcall goes on where a thread began.
 * The source of the layout is src/cmd/link/internal/ld/pcln.go and src/internal/abi/symtab.go of Go
 * 1.18 and later.
 */
#ifndef KB_LIB_UNWIND_GO_STARTS_H
#define KB_LIB_UNWIND_GO_STARTS_H

#include "unwind/frames.h"

struct kb_go_starts {
	const struct kb_unwind_section *table;
	bool swap;
	uint32_t nr, next;	/* functions, and the one to look at */
	uint64_t text, names, functions;
	unsigned int flag;	/* byte of a function with its flags */
};

/* Ready for kb_go_starts_next(), which finds nothing in @table if it is none of Go's. */
void kb_go_starts_begin(struct kb_go_starts *starts, const struct kb_unwind_section *table,
			bool swap);

/* The next function without a caller. False: there are no more. */
bool kb_go_starts_next(struct kb_go_starts *starts, uint64_t *start, uint64_t *end);

#endif
