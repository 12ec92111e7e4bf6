/* SPDX-License-Identifier: MIT */
/*
 * Which file of this machine an image is. There may be several of its path: in containers,
 * and before and after an update.
 */
#ifndef KBARMAN_SYM_LOCATE_H
#define KBARMAN_SYM_LOCATE_H

#include "sym/image.h"

/* "/path", or that below the directory that is to be looked in; to be freed. */
char *kb_locate_below(const struct kb_images *images, const char *name);

/*
 * Find the file of @image: path and fit are filled in. What the capture says of it decides
 * among those that are there, and is not held against the only file of a path: that may have
 * been copied up, restored, or moved to another disk. Where the capture knows several, one
 * is taken only if it is told from the others. If fit is KB_FIT_NAME, the path may lead to
 * nothing.
 */
void kb_locate(struct kb_images *images, struct kb_image *image);

#endif
