/* SPDX-License-Identifier: MIT */
/*
 * CAPTURE.symbols: what is needed to resolve addresses of a capture's images on another
 * machine. It is text, compressed with gzip; zcat shows it:
 *
 *	kbarman-symbols 1
 *	image BUILD_ID NAME		a path as mapped; BUILD_ID "-": none;
 *					"@FILE" after it: which file, as in struct kb_map
 *	segment OFFSET VADDR SIZE FLAGS	FLAGS "x" or "-": executable or not
 *	symbol ADDRESS SIZE NAME	ADDRESS as in the file
 *
 * A function that has no symbol is called FILE+0xADDRESS (kb_symtab_fill()). It is known again by
 * that name, and does not keep a debug file from being read that was installed since.
 *
 * Numbers are hexadecimal. Segments and symbols belong to the image before them. In names
 * '\', control characters and bytes above ASCII are written as \ooo (octal).
 */
#ifndef KB_LIB_SYM_SYMBOLIZER_BUNDLE_H
#define KB_LIB_SYM_SYMBOLIZER_BUNDLE_H

#include <kbarman/error.h>

#include "sym/image/image.h"

#define KB_BUNDLE_SUFFIX	".symbols"
#define KB_BUNDLE_WRITTEN	".tmp"	/* after it while it is being written */
#define KB_BUNDLE_TEMPORARY	KB_BUNDLE_SUFFIX KB_BUNDLE_WRITTEN

/*
 * Read @path into @images. The images in the bundle count as loaded then. -ENODATA: not in this
 * format; -EBADMSG: damaged, everything before the damage is used. Other errors are those
 * of reading.
 */
int kb_bundle_read(struct kb_images *images, const char *path, struct kb_error *err);

/* Write those images that have segments or symbols. */
int kb_bundle_write(const struct kb_images *images, const char *path, struct kb_error *err);

#endif
