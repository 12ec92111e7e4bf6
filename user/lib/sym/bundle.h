/* SPDX-License-Identifier: MIT */
/*
 * CAPTURE.symbols: what the images of a capture need to be resolved elsewhere. It is
 * text, packed by gzip, made to be looked at with zcat:
 *
 *	kbarman-symbols 1
 *	image BUILD_ID NAME		a path as it was mapped; BUILD_ID "-": none;
 *					"@FILE" behind it: which file, as in struct kb_map
 *	segment OFFSET VADDR SIZE FLAGS	FLAGS "x" or "-": executable or not
 *	symbol ADDRESS SIZE NAME	ADDRESS as in the file
 *
 * Numbers are hexadecimal. Segments and symbols belong to the image in front of them.
 * In names '\', control characters and what is above are written as \ooo (octal).
 */
#ifndef KBARMAN_SYM_BUNDLE_H
#define KBARMAN_SYM_BUNDLE_H

#include <kbarman/error.h>

#include "sym/image.h"

#define KB_BUNDLE_SUFFIX	".symbols"

/*
 * Read @path into @images, whose images of these names are loaded then. -ENODATA: not
 * in the format; -EBADMSG: damaged, what came before is used; others as they are.
 */
int kb_bundle_read(struct kb_images *images, const char *path, struct kb_error *err);

/* Write those of @images that have segments or symbols. */
int kb_bundle_write(const struct kb_images *images, const char *path, struct kb_error *err);

#endif
