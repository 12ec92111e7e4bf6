// SPDX-License-Identifier: MIT
/* See elf_data.h. */
#include <stdlib.h>

#include "sym/elf_data.h"

void kb_elf_release(struct kb_elf *elf)
{
	kb_symtab_release(&elf->symbols);
	free(elf->segments);
	*elf = (struct kb_elf) { 0 };
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

const struct kb_elf_segment *kb_elf_segment_at(const struct kb_elf *elf, uint64_t offset)
{
	const struct kb_elf_segment *found = NULL;
	uint32_t i;

	for (i = 0; i < elf->nr_segments; i++) {
		const struct kb_elf_segment *segment = &elf->segments[i];

		if (offset >= segment->offset && offset - segment->offset < segment->size &&
		    (!found || segment->executable > found->executable))
			found = segment;
	}
	return found;
}
