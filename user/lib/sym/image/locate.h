/* SPDX-License-Identifier: MIT */
/*
 * Finds the file of an image on this machine. There may be several files with its path: in
 * containers, and before and after an update.
 */
#ifndef KB_LIB_SYM_IMAGE_LOCATE_H
#define KB_LIB_SYM_IMAGE_LOCATE_H

#include "sym/image/image.h"

/* "/path", or the path below the symfs directory; the caller frees it. */
char *kb_locate_below(const struct kb_images *images, const char *name);

/*
 * Find the file of @image and set path and fit. The recorded identity selects among several
 * files of the path. If the capture knows only one file of the path, a different identity is
 * accepted: the file may have been copied up, restored or moved to another disk. If the capture
 * knows several, a file is used only if its identity says which one it is. If fit is
 * KB_FIT_NAME, the path may not exist.
 */
void kb_locate(struct kb_images *images, struct kb_image *image);

#endif
