/* SPDX-License-Identifier: MIT */
/*
 * Which file the kernel takes a path for. stat(2) tells something else on file systems
 * of several layers or volumes; /proc/PID/maps has what the module records.
 */
#ifndef KBARMAN_SYM_FILE_ID_H
#define KBARMAN_SYM_FILE_ID_H

#include <stdbool.h>

#define KB_FILE_ID	64	/* bytes */

/* "MAJOR:MINOR:INODE" of the file at @path; false if it can't be told. */
bool kb_file_id(const char *path, char file[KB_FILE_ID]);

#endif
