/* SPDX-License-Identifier: MIT */
/*
 * What else is known of the address that was resolved last: its place in a file, for formats that
 * contain it beside the name, and for how long the answer holds.
 */
#ifndef KB_LIB_SYM_SYMBOLIZER_PLACE_H
#define KB_LIB_SYM_SYMBOLIZER_PLACE_H

#include <stdbool.h>

#include <kbarman/symbol.h>

#include "sym/tables/elf_data.h"

struct kb_place {
	const struct kb_map *row;		/* the mapping; NULL: not known */
	const struct kb_build_id *build_id;	/* of the image; NULL: not known */
	bool anonymous;				/* its memory has no file */
	uint32_t line_id;			/* of code made at run time, which has another line
						 * at another time; 0: none, or a file's DWARF says */
};

/* The place of the address that @symbolizer resolved last. Holds until it resolves another one. */
const struct kb_place *kb_symbolizer_place(const struct kb_symbolizer *symbolizer);

/* The time for which the last answer holds for its task and address, in ticks: from *@since to *@until. */
void kb_symbolizer_holds(const struct kb_symbolizer *symbolizer, uint64_t *since, uint64_t *until);

#endif
