/* SPDX-License-Identifier: MIT */
/*
 * Files that say where the kernel is: nobody but the owner reads them, and the group where the umask
 * lets it, as that of the packaged recorder. A name that somebody else has put there is never
 * followed.
 */
#ifndef KB_LIB_BASE_PRIVATE_H
#define KB_LIB_BASE_PRIVATE_H

/* A new file, instead of one that was there. Returns its descriptor or a negative errno. */
int kb_private_new(const char *path);

/*
 * The same file if it is there, as it is, for reading and writing: it must be a regular file with
 * no other name (else -EPERM; -ELOOP for a link). Returns its descriptor or a negative errno.
 */
int kb_private_open(const char *path);

#endif
