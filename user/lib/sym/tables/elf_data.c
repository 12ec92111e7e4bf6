// SPDX-License-Identifier: MIT
/* See elf_data.h. */
#include <errno.h>
#include <stdlib.h>

#include "sym/tables/elf_data.h"
#include "sym/tables/symtab_fill.h"

void kb_elf_release(struct kb_elf *elf)
{
	kb_symtab_release(&elf->symbols);
	kb_symtab_release(&elf->functions);
	free(elf->segments);
	kb_unwind_rows_release(&elf->unwind);
	kb_jit_release(&elf->jit);
	*elf = (struct kb_elf) { 0 };
}

int kb_elf_sort(struct kb_elf *elf, struct kb_text file)
{
	int ret = kb_symtab_sort(&elf->symbols);
	uint32_t nr = elf->symbols.nr_symbols;

	if (!ret)
		ret = kb_symtab_sort(&elf->functions);
	if (!ret)
		ret = kb_symtab_fill(&elf->symbols, &elf->functions, file);
	elf->nr_stubs += elf->symbols.nr_symbols - nr;
	kb_symtab_release(&elf->functions);
	return ret == -EFBIG ? 0 : ret;	/* then only symbols have names */
}

bool kb_elf_maps_page(const struct kb_elf *elf, uint64_t offset)
{
	uint32_t i;

	for (i = 0; i < elf->nr_segments; i++) {
		const struct kb_elf_segment *segment = &elf->segments[i];

		if (offset < segment->offset ? segment->offset - offset < KB_ELF_PAGE :
		    offset - segment->offset < segment->size)
			return true;
	}
	return false;
}

const struct kb_elf_segment *kb_elf_segment_among(const struct kb_elf_segment *segments, uint32_t nr,
						  uint64_t offset)
{
	const struct kb_elf_segment *found = NULL;
	uint32_t i;

	for (i = 0; i < nr; i++) {
		const struct kb_elf_segment *segment = &segments[i];

		if (offset >= segment->offset && offset - segment->offset < segment->size &&
		    (!found || segment->executable > found->executable))
			found = segment;
	}
	return found;
}

const struct kb_elf_segment *kb_elf_segment_at(const struct kb_elf *elf, uint64_t offset)
{
	return kb_elf_segment_among(elf->segments, elf->nr_segments, offset);
}
