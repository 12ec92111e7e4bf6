/* SPDX-License-Identifier: MIT */
#ifndef KB_LIB_SYM_FILES_REGULAR_H
#define KB_LIB_SYM_FILES_REGULAR_H

/*
 * Open @path for reading if it is a regular file. Other files are not opened, because a FIFO
 * may block and a device may act. @flags: more flags of open(2), such as O_NOFOLLOW. Returns a
 * descriptor; -ENOTSUP for another kind of file; or another negative errno.
 */
int kb_open_regular(const char *path, int flags);

#endif
