/* SPDX-License-Identifier: MIT */
/* Source lines of the kernel, whose file has other addresses than the kernel in memory. */
#ifndef KB_LIB_SYM_SYMBOLIZER_KERNEL_LINES_H
#define KB_LIB_SYM_SYMBOLIZER_KERNEL_LINES_H

#include "sym/symbolizer/symbol_cache.h"

/*
 * Change *@address, which is in @symbol of the kernel, to that in vmlinux. @image: the kernel's,
 * which has lines afterwards. False: there is no vmlinux, or it may have another function there.
 */
bool kb_kernel_lines_place(struct kb_symbol_cache *cache, struct kb_image *image,
			   const struct kb_symbol *symbol, uint64_t *address);

#endif
