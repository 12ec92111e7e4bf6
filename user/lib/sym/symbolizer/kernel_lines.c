// SPDX-License-Identifier: MIT
/* See kernel_lines.h. A vmlinux is used only if its symbols are those of the recorded kernel. */
#include <stdlib.h>
#include <string.h>

#include "sym/elf/elf.h"
#include "sym/image/load.h"
#include "sym/symbolizer/kernel.h"
#include "sym/symbolizer/kernel_lines.h"

/* What is added to an address in vmlinux: the kernel has another address after each boot. */
static uint64_t kernel_shift(const struct kb_symbol_cache *cache)
{
	return cache->kallsyms.stext - cache->kernel_elf.stext;
}

/*
 * Is vmlinux of the kernel whose symbols these are? Then a symbol of its text is at the same place
 * in both. A kernel may call some differently, and 1 in 10 shall not matter. Another build of the
 * same source agrees up to the first function that has another length.
 */
static bool is_recorded_kernel(const struct kb_symbol_cache *cache)
{
	const struct kb_kallsyms *kallsyms = &cache->kallsyms;
	const struct kb_elf *elf = &cache->kernel_elf;
	uint32_t nr = 0, differ = 0;

	if (!kallsyms->stext || !elf->stext)
		return false;
	for (uint32_t i = 0; i < kallsyms->symbols.nr_symbols; i++) {
		const struct kb_symtab_symbol *symbol = &kallsyms->symbols.symbols[i];
		uint64_t address = symbol->start - kernel_shift(cache);
		struct kb_symtab_hit hit;

		if (symbol->group || symbol->rank == KB_RANK_BOUNDARY ||
		    symbol->start < kallsyms->stext)
			continue;
		kb_symtab_find(&elf->symbols, address, &hit);
		nr++;
		differ += !hit.symbol || hit.symbol->start != address ||
			  strcmp(kb_symtab_name(&elf->symbols, hit.symbol),
				 kb_symtab_name(&kallsyms->symbols, symbol)) != 0;
	}
	return nr && differ <= nr / 10;
}

/* Open the DWARF of the kernel: of the vmlinux in the options, or of one in a usual place. */
static void load(struct kb_symbol_cache *cache, struct kb_image *image)
{
	struct kb_error err = { 0 };
	char *path;

	if (image->lines_tried)
		return;
	path = cache->images.foreign && !cache->vmlinux ? NULL :
		kb_kernel_image_path(cache->barman, cache->images.symfs, cache->vmlinux);
	if (path && kb_elf_load(&cache->kernel_elf, path, &err))
		kb_image_complain(image, "%s", kb_error_text(&err));
	else if (path && !is_recorded_kernel(cache))
		kb_image_complain(image, "%s is not of the kernel that was recorded: its lines are "
				  "not used", path);
	else if (path) {
		kb_image_take_lines(&cache->images, image, path);
		return;
	}
	free(path);
	kb_image_take_lines(&cache->images, image, NULL);
}

/* If the symbol there has another name, it may be an alias, but that is not certain. */
bool kb_kernel_lines_place(struct kb_symbol_cache *cache, struct kb_image *image,
			   const struct kb_symbol *symbol, uint64_t *address)
{
	struct kb_symtab_hit hit;
	uint64_t start;

	load(cache, image);
	if (!image->lines || !symbol->address)
		return false;
	*address -= kernel_shift(cache);
	start = symbol->address - kernel_shift(cache);
	kb_symtab_find(&cache->kernel_elf.symbols, start, &hit);
	return hit.symbol && hit.symbol->start == start &&
	       strcmp(kb_symtab_name(&cache->kernel_elf.symbols, hit.symbol), symbol->name) == 0;
}
