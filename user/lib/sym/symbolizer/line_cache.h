/* SPDX-License-Identifier: MIT */
/*
 * Lines and inlined functions for the symbolizer: results of DWARF for an address of an image,
 * with ids and demangled names, cached by address.
 */
#ifndef KB_LIB_SYM_SYMBOLIZER_LINE_CACHE_H
#define KB_LIB_SYM_SYMBOLIZER_LINE_CACHE_H

#include <kbarman/symbol.h>

#include "base/table.h"
#include "sym/image/image.h"
#include "sym/names/demangle.h"

struct kb_line_cache {
	bool inlined;			/* false: lines only */
	struct kb_demangler *demangler;	/* NULL: names are not demangled */
	uint32_t *nr_ids;		/* source of new ids */

	struct kb_table cache;		/* from image and address to frames */
	struct kb_frame *frames;	/* of all entries of the cache */
	uint32_t nr_frames, max_frames;
	struct kb_table lines;		/* from file and line to ids */
	struct kb_table functions;	/* from image and name to ids */
	void *strings;			/* of both: tsearch(3) */
};

/* Other members are zero or set by the caller. */
void kb_line_cache_init(struct kb_line_cache *frames);
void kb_line_cache_release(struct kb_line_cache *frames);

/*
 * The frames at @address of @image's file, innermost first; @symbol is the symbol there.
 * Returns their number; 0 without memory. They hold until the next call.
 */
uint32_t kb_line_cache_get(struct kb_line_cache *frames, struct kb_image *image, uint64_t address,
			   const struct kb_symbol *symbol, const struct kb_frame **out);

/* Say in @frame, whose strings stay with @frames, that it is line @line (0: unknown) of @file. */
void kb_line_cache_place(struct kb_line_cache *frames, const char *file, uint32_t line,
			 struct kb_frame *frame);

#endif
