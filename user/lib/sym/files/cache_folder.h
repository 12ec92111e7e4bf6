/* SPDX-License-Identifier: MIT */
/*
 * A folder below ${XDG_CACHE_HOME:-~/.cache}/kbarman for files that can be made again. If anything
 * is wrong with the folder, there is none: that is not worth a message.
 */
#ifndef KB_LIB_SYM_FILES_CACHE_FOLDER_H
#define KB_LIB_SYM_FILES_CACHE_FOLDER_H

#include <stdint.h>

/*
 * Open the folder @name, and make it where it is missing. It belongs to this user, and nobody else
 * may write to it. Returns a descriptor, or -1.
 */
int kb_cache_folder_open(const char *name);

/* Remove files of @folder, those first that were changed longest ago, down to @limit bytes. */
void kb_cache_folder_limit(int folder, uint64_t limit);

#endif
