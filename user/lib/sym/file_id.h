/* SPDX-License-Identifier: MIT */
/*
 * Which file the kernel takes a path for, as the module records it:
 * "MAJOR:MINOR:INODE:SIZE:MTIME", the first three as in /proc/PID/maps, since stat(2) tells
 * something else on file systems of several layers or volumes; bytes; and ns since 1970 of
 * the last change.
 */
#ifndef KBARMAN_SYM_FILE_ID_H
#define KBARMAN_SYM_FILE_ID_H

#include <stdbool.h>
#include <stdint.h>

#include <kbarman/text.h>

#define KB_FILE_ID	96	/* bytes */

/* Of the file at @path; false if it can't be told. */
bool kb_file_id(const char *path, char id[KB_FILE_ID]);

/* Does @line of /proc/PID/maps tell of the mapping that begins at @address, and of what file? */
struct kb_device_inode {
	unsigned int major, minor;
	uint64_t inode;
};

bool kb_file_id_of_line(const char *line, uintptr_t address, struct kb_device_inode *found);

/*
 * Has the one as much in it as the other, and since the same moment? So has a file that
 * overlayfs copied up, or a copy that kept its time, with another inode. False too if one of
 * them does not say so, or if the time says nothing: some tools set it to 0 or 1 s everywhere.
 */
bool kb_file_id_alike(struct kb_text a, struct kb_text b);

#endif
