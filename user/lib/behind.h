/* SPDX-License-Identifier: MIT */
/*
 * Writing behind: a thread does what was asked of a file, in the same order, so that a
 * disk that stalls does not keep who asks from what is more urgent.
 */
#ifndef KB_LIB_BEHIND_H
#define KB_LIB_BEHIND_H

#include <stddef.h>
#include <stdint.h>

struct kb_behind;

/* For @fd, which stays the caller's. 0 or a negative errno. */
int kb_behind_create(struct kb_behind **out, int fd);

/* Does all that is left first, unless something has failed. NULL is none. */
void kb_behind_destroy(struct kb_behind *behind);

/*
 * @length bytes to @offset of the file. They are copied; the caller waits only while
 * there are more than 64 MiB to be written. Returns the first error of all, negative
 * errno, behind which nothing is written any more.
 */
int kb_behind_write(struct kb_behind *behind, const void *data, size_t length, uint64_t offset);

/* What is asked for from now on is done when all before it is on the disk. */
int kb_behind_sync(struct kb_behind *behind);

/* Wait until everything is done. */
int kb_behind_drain(struct kb_behind *behind);

#endif
