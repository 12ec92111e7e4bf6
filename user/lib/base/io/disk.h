/* SPDX-License-Identifier: MIT */
/* What a disk keeps for others, so that files that come all the time do not fill it. */
#ifndef KB_LIB_BASE_IO_DISK_H
#define KB_LIB_BASE_IO_DISK_H

#include <stdint.h>

#define KB_KEEP_FREE_USUAL	UINT64_MAX	/* a twentieth of the disk, at most 1 GiB */

/* How many bytes are missing until @keep bytes of the disk of @fd are free; 0: none, or nobody knows. */
uint64_t kb_disk_missing(int fd, uint64_t keep);

#endif
