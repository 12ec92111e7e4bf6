/* SPDX-License-Identifier: MIT */
/* The names that sysfs has for disks. */
#ifndef KB_LIB_RECORD_RECORDER_DISK_TABLE_H
#define KB_LIB_RECORD_RECORDER_DISK_TABLE_H

#include <stdint.h>

#define KB_DISK_TABLE_NAME	64	/* bytes of a name, with the NUL */
#define KB_DISK_TABLE_MAX	1024U	/* so many at most */

/*
 * Call @take for each disk, partitions excepted. @device: MAJOR << 20 | MINOR. @sys: the folder with a link for
 * each block device, NULL for that of this machine. Returns 0, or the first value of @take that is not 0. A
 * folder that can't be read has no disks.
 */
int kb_disk_table_read(const char *sys, int (*take)(void *context, uint32_t device, const char *name),
		       void *context);

#endif
