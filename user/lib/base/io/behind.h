/* SPDX-License-Identifier: MIT */
/*
 * Write in the background: a thread writes to a file in the order of the calls, so a slow disk
 * does not delay the caller.
 */
#ifndef KB_LIB_BASE_IO_BEHIND_H
#define KB_LIB_BASE_IO_BEHIND_H

#include <stddef.h>
#include <stdint.h>

struct kb_behind;

/* @fd stays the caller's. Returns 0 or a negative errno. */
int kb_behind_create(struct kb_behind **out, int fd);

/* Writes all that is left first, unless there was an error. @behind may be NULL. */
void kb_behind_destroy(struct kb_behind *behind);

/*
 * Write @length bytes to @offset of the file. The bytes are copied. The caller waits only while
 * more than 64 MiB are unwritten. Returns the first error of all calls (negative errno); after
 * an error nothing is written any more.
 */
int kb_behind_write(struct kb_behind *behind, const void *data, size_t length, uint64_t offset);

/* Sync the file after all earlier writes, or cut it to @length bytes. Do not wait for it. */
int kb_behind_sync(struct kb_behind *behind);
int kb_behind_cut(struct kb_behind *behind, uint64_t length);

/* Wait until everything is done. */
int kb_behind_drain(struct kb_behind *behind);

#endif
