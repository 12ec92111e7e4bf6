// SPDX-License-Identifier: MIT
#include <sys/statvfs.h>

#include "base/io/disk.h"

#define USUAL_PART	20
#define USUAL_MOST	(UINT64_C(1) << 30)

uint64_t kb_disk_missing(int fd, uint64_t keep)
{
	struct statvfs fs;
	uint64_t size, now;

	if (fstatvfs(fd, &fs))
		return 0;
	size = (uint64_t)fs.f_blocks * fs.f_frsize;
	now = (uint64_t)fs.f_bavail * fs.f_frsize;	/* for users without special rights */
	if (keep == KB_KEEP_FREE_USUAL)
		keep = size / USUAL_PART < USUAL_MOST ? size / USUAL_PART : USUAL_MOST;
	return now < keep ? keep - now : 0;
}
