// SPDX-License-Identifier: MIT
/* Fuzz target of the reader of jitdumps: what was read can be searched, at any time. */
#include <stdlib.h>

#include "sym/jit/jitdump.h"
#include "sym/tables/elf_data.h"

static void search(const struct kb_elf *elf)
{
	for (uint32_t i = 0; i < elf->jit.nr_codes; i++) {
		const struct kb_symtab_symbol *symbol = &elf->symbols.symbols[i];
		const struct kb_jit_code *code = &elf->jit.codes[i];
		struct kb_jit_hit hit;

		kb_jit_find(&elf->jit, &elf->symbols, symbol->start, code->since, &hit);
		if (hit.low > symbol->start || hit.high < symbol->start)
			abort();
		/* Code that is found is there, and as new as this one at least. */
		if (hit.symbol && (symbol->start < hit.symbol->start ||
				   symbol->start - hit.symbol->start >= hit.symbol->size ||
				   hit.code->since != code->since))
			abort();
		kb_jit_line_at(&elf->jit, code, symbol->size);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct kb_elf elf = { 0 };

	if (!kb_jitdump_parse(&elf.jit, &elf.symbols, data, size)) {
		if (elf.jit.nr_codes != elf.symbols.nr_symbols)
			abort();
		if (!kb_jit_index(&elf.jit, &elf.symbols))
			search(&elf);
	}
	kb_elf_release(&elf);
	return 0;
}
