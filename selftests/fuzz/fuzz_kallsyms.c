// SPDX-License-Identifier: MIT
/* Fuzz target of the reader of kallsyms text: each symbol is found where it begins. */
#include <stdlib.h>

#include "sym/tables/kallsyms.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct kb_kallsyms kallsyms;
	uint32_t i;

	if (kb_kallsyms_parse(&kallsyms, NULL, (const char *)data, size, "input", NULL))
		return 0;
	for (i = 0; i < kallsyms.symbols.nr_symbols; i++) {
		const struct kb_symtab_symbol *symbol = &kallsyms.symbols.symbols[i];
		struct kb_symtab_hit hit;

		kb_symtab_find(&kallsyms.symbols, symbol->start, &hit);
		if (symbol->rank == KB_RANK_BOUNDARY ? hit.symbol != NULL : hit.symbol != symbol)
			abort();
		if (symbol->group >= kallsyms.nr_images)
			abort();
	}
	kb_kallsyms_release(&kallsyms);
	return 0;
}
