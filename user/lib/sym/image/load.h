/* SPDX-License-Identifier: MIT */
/*
 * Finds and reads the symbols and the lines of an image, when the first address in it is
 * resolved.
 */
#ifndef KB_LIB_SYM_IMAGE_LOAD_H
#define KB_LIB_SYM_IMAGE_LOAD_H

#include "sym/image/image.h"

/*
 * Read the symbols of an image, unless that was done already, and return the image. If only a
 * copy of the image's file (or its copied up version) is available, return the image of that.
 * Errors become complaints of the image.
 */
struct kb_image *kb_image_load(struct kb_images *images, struct kb_image *image);

/*
 * Find the DWARF of a loaded image that is a file, once. Errors become complaints of the image.
 */
void kb_image_load_lines(struct kb_images *images, struct kb_image *image);

/* Use @path as the image's DWARF. @path may be NULL and is freed. */
void kb_image_take_lines(struct kb_images *images, struct kb_image *image, char *path);

/*
 * The image with the code that process @pid made at run time, from its perf map. NULL: there is no
 * such map, or no memory.
 */
struct kb_image *kb_images_perfmap(struct kb_images *images, uint32_t pid);

/*
 * The image with the code of the jitdump that @row maps. It has no code if the dump can't be read,
 * and then a complaint. NULL without memory.
 */
struct kb_image *kb_images_jitdump(struct kb_images *images, const struct kb_map *row);

/* What is to be said of @image; the caller frees it. NULL: nothing, or no memory. */
char *kb_image_complaint(const struct kb_images *images, const struct kb_image *image);

#endif
