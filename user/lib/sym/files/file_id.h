/* SPDX-License-Identifier: MIT */
/*
 * sym/files/: which file a capture means, and what lies beside captures: identities, regular files,
 * files of the same path, side files, packages. Nothing here reads what a file has.
 *
 * The identity of a file, in the form that the module records: "MAJOR:MINOR:INODE:SIZE:MTIME".
 * The first three are those of /proc/PID/maps: on file systems with layers or subvolumes
 * stat(2) gives other numbers. SIZE is in bytes. MTIME is the last change, in ns since 1970.
 */
#ifndef KB_LIB_SYM_FILES_FILE_ID_H
#define KB_LIB_SYM_FILES_FILE_ID_H

#include <stdbool.h>
#include <stdint.h>

#include <kbarman/text.h>

#define KB_FILE_ID	96	/* bytes */

/* The identity of the file at @path; false if it is not available. */
bool kb_file_id(const char *path, char id[KB_FILE_ID]);

/* The same for the file that is open as @fd. */
bool kb_file_id_of(int fd, char id[KB_FILE_ID]);

/* For a line of /proc/PID/maps: device and inode of the mapping that begins at @address. */
struct kb_device_inode {
	unsigned int major, minor;
	uint64_t inode;
};

bool kb_file_id_of_line(const char *line, uintptr_t address, struct kb_device_inode *found);

/* Whether two files have equal device and inode, whatever their size and time; false if empty. */
bool kb_file_id_same_inode(struct kb_text a, struct kb_text b);

/*
 * Whether two files have equal size and equal time of the last change. This is so for a file
 * that overlayfs copied up, and for a copy that kept its time; their inodes differ. False if
 * one of them has no such data, or if the time is meaningless: some tools set all times to 0 or
 * 1 s.
 */
bool kb_file_id_alike(struct kb_text a, struct kb_text b);

#endif
