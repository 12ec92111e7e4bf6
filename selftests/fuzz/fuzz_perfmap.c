// SPDX-License-Identifier: MIT
/* Fuzz target of the reader of perf maps: what was read can be searched. */
#include <stdlib.h>

#include "sym/jit/perfmap.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct kb_symtab symtab = { 0 };
	uint32_t i;

	if (kb_perfmap_parse(&symtab, (const char *)data, size) == 0)
		for (i = 0; i < symtab.nr_symbols; i++) {
			struct kb_symtab_hit hit;

			kb_symtab_find(&symtab, symtab.symbols[i].start, &hit);
			if (hit.symbol != &symtab.symbols[i])
				abort();
		}
	kb_symtab_release(&symtab);
	return 0;
}
