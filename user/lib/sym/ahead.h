/* SPDX-License-Identifier: MIT */
/*
 * Questions that are known before they are asked. What answers them is scattered over many
 * tables that no cache holds; it comes while others are answered.
 */
#ifndef KBARMAN_SYM_AHEAD_H
#define KBARMAN_SYM_AHEAD_H

#include <kbarman/symbol.h>

#include "sym/symtab.h"

/* Where the answer will be. */
struct kb_ahead {
	const struct kb_symtab *symtab;		/* NULL: not known before it is asked */
	uint64_t address;
};

/*
 * For a question that will be asked of @symbolizer. Says nothing of the answer, and loads
 * nothing from a file. @ahead holds as long as the symbolizer lives.
 */
void kb_symbolizer_ahead(struct kb_symbolizer *symbolizer, uint32_t task_id, uint64_t timestamp,
			 uint64_t pc, struct kb_ahead *ahead);

#endif
