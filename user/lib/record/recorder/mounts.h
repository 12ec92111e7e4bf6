/* SPDX-License-Identifier: MIT */
/*
 * Where mapped files are: the kernel names a file by its path inside its mount, because it holds
 * nothing of the mount. The mount point is added here, while the mount is there.
 */
#ifndef KB_LIB_RECORD_RECORDER_MOUNTS_H
#define KB_LIB_RECORD_RECORDER_MOUNTS_H

#include <stdint.h>

#include <kbarman/text.h>

struct kb_mounts;

/* @proc: NULL for /proc. NULL: out of memory. */
struct kb_mounts *kb_mounts_create(const char *proc);
void kb_mounts_destroy(struct kb_mounts *mounts);

/*
 * The path of @image, which task @task_id has mapped and whose identity is @file
 * (format/barman/file.h). It is a mount point of the task's or of this process's with the path
 * behind it: that where such a file is, else one of the file's device. It is @image itself if no
 * mount is known, or if it is no file with an identity. It is there until the next call. NULL: out
 * of memory.
 */
const char *kb_mounts_path(struct kb_mounts *mounts, uint32_t task_id, const char *image,
			   struct kb_text file);

#endif
