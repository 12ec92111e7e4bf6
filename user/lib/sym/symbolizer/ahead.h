/* SPDX-License-Identifier: MIT */
/*
 * Prefetching for addresses that will be resolved soon. The data for the answers are in many
 * tables that fit into no cache; they are loaded while other addresses are resolved.
 */
#ifndef KB_LIB_SYM_SYMBOLIZER_AHEAD_H
#define KB_LIB_SYM_SYMBOLIZER_AHEAD_H

#include <kbarman/symbol.h>

#include "sym/tables/symtab.h"

struct kb_image;

/* Where the answer will be. */
struct kb_ahead {
	struct kb_symtab *symtab;		/* NULL: not known in advance */
	uint64_t address;
	struct kb_image *image;			/* NULL: the address is in no file */
};

/*
 * Prepare to resolve an address with @symbolizer. This does not resolve it, and loads nothing
 * from files. @ahead holds as long as the symbolizer lives.
 */
void kb_symbolizer_ahead(struct kb_symbolizer *symbolizer, uint32_t task_id, uint64_t timestamp,
			 uint64_t pc, struct kb_ahead *ahead);

/*
 * The id of the symbol at what @ahead was prepared for, if kb_symbolizer_arrive() has named that
 * symbol before; else KB_SYMTAB_NO_ID. Symbols with lines and inlined functions have none here.
 */
uint32_t kb_symbolizer_arrive_id(const struct kb_symbolizer *symbolizer,
				 const struct kb_ahead *ahead);

/*
 * kb_symbolizer_frames() for what @ahead was prepared for, with the same task, time and address:
 * the mapping is not looked for again.
 */
uint32_t kb_symbolizer_arrive(struct kb_symbolizer *symbolizer, uint32_t task_id,
			      uint64_t timestamp, uint64_t pc, const struct kb_ahead *ahead,
			      const struct kb_frame **frames);

#endif
