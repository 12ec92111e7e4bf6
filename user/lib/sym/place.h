/* SPDX-License-Identifier: MIT */
/* Where in a file an address stands, for formats that say so beside its name. */
#ifndef KBARMAN_SYM_PLACE_H
#define KBARMAN_SYM_PLACE_H

#include <stdbool.h>

#include <kbarman/symbol.h>

#include "sym/elf.h"

struct kb_place {
	const struct kb_map *row;		/* the mapping; NULL: none is known */
	const struct kb_build_id *build_id;	/* of its image; NULL: not known */
	bool anonymous;				/* no file stands behind its memory */
};

/* Of the address that @symbolizer resolved last. */
void kb_symbolizer_place(const struct kb_symbolizer *symbolizer, struct kb_place *place);

#endif
