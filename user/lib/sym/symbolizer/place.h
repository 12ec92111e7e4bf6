/* SPDX-License-Identifier: MIT */
/* The place of an address in a file, for formats that contain it beside the name. */
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

#endif
