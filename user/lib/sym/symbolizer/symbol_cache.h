/* SPDX-License-Identifier: MIT */
/*
 * What was read to resolve addresses, and does not depend on one capture: images, symbols of the
 * kernel, readable names, lines, and the ids of answers.
 */
#ifndef KB_LIB_SYM_SYMBOLIZER_SYMBOL_CACHE_H
#define KB_LIB_SYM_SYMBOLIZER_SYMBOL_CACHE_H

#include <kbarman/symbol.h>

#include "sym/image/image.h"
#include "sym/names/demangle.h"
#include "sym/symbolizer/line_cache.h"
#include "sym/tables/elf_data.h"
#include "sym/tables/kallsyms.h"

struct kb_symbol_cache {
	struct kb_images images;
	const struct kb_barman *barman;	/* the capture that the cache serves now; NULL: none */
	char *origin;			/* machine and kernel of all captures; NULL: none yet */

	bool symfs_given;		/* "/", too: then files here are the recorded ones */
	char *kallsyms_option;		/* from the options; NULL: none */
	char *kallsyms_path;		/* NULL: the kernel's symbols are not available */
	bool kallsyms_tried;
	uint64_t modules;		/* the modules at that time, if it is this machine */
	struct kb_kallsyms kallsyms;
	struct kb_image **kernel_images; /* by group of kallsyms; NULL: not requested yet */
	struct kb_error kallsyms_error;
	struct kb_error bundle_error;

	uint32_t complaints;		/* about so many single images */
	bool raw_names;
	struct kb_demangler demangler;
	char **demangled;		/* by id: readable names; NULL: the name does not change */
	uint32_t max_demangled;
	uint32_t nr_ids;		/* id 0 is used only when there is no memory */

	bool wants_lines;
	struct kb_line_cache frames;
	char *vmlinux;			/* from the options; NULL: search for it */
	struct kb_elf kernel_elf;	/* of vmlinux, to find lines */
};

/*
 * Serve @barman from now on, and no longer the capture before it. @path: of the capture, to find
 * its side files; NULL: do not look for them. -EXDEV: the capture is of another machine or kernel.
 */
int kb_symbol_cache_serve(struct kb_symbol_cache *cache, const struct kb_barman *barman,
			  const char *path, struct kb_error *err);

/* Read the kernel's symbols, unless that was tried. The error stays in the cache. */
int kb_symbol_cache_load_kernel(struct kb_symbol_cache *cache);

/* The image of a group of the kernel's symbols; NULL without memory. */
struct kb_image *kb_symbol_cache_kernel_image(struct kb_symbol_cache *cache, uint32_t group);

/* The id in @id, which is a new one at the first request. */
static inline uint32_t kb_symbol_cache_id(struct kb_symbol_cache *cache, uint32_t *id)
{
	if (*id == KB_SYMTAB_NO_ID)
		*id = cache->nr_ids++;
	return *id;
}

/* Give @symbol of @symtab, which has none, an id, and demangle its name. */
void kb_symbol_cache_add(struct kb_symbol_cache *cache, const struct kb_symtab *symtab,
			 struct kb_symtab_symbol *symbol);

/* The readable name of @symbol of @symtab, which has an id from then on. */
static inline const char *kb_symbol_cache_name(struct kb_symbol_cache *cache,
					       const struct kb_symtab *symtab,
					       struct kb_symtab_symbol *symbol)
{
	if (symbol->id == KB_SYMTAB_NO_ID)
		kb_symbol_cache_add(cache, symtab, symbol);
	return symbol->id < cache->max_demangled && cache->demangled[symbol->id] ?
		cache->demangled[symbol->id] : kb_symtab_name(symtab, symbol);
}

#endif
