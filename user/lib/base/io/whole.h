/* SPDX-License-Identifier: MIT */
/* read(2) and write(2) until all bytes are there: signals and short transfers do not end them. */
#ifndef KB_LIB_BASE_IO_WHOLE_H
#define KB_LIB_BASE_IO_WHOLE_H

#include <stddef.h>
#include <sys/types.h>

/* Returns the number of bytes, which is less than @size only at the end, or a negative errno. */
ssize_t kb_read_whole(int fd, void *data, size_t size);

/* Returns 0 or a negative errno. */
int kb_write_whole(int fd, const void *data, size_t size);

#endif
