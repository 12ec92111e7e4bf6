/* SPDX-License-Identifier: MIT */
/* Data in memory, as gzip compresses them as a whole. */
#ifndef KB_LIB_FORMAT_GZIP_WHOLE_H
#define KB_LIB_FORMAT_GZIP_WHOLE_H

#include <stddef.h>
#include <stdint.h>

/* Each of these allocates *@out. Returns 0 or a negative errno: then *@out is NULL. */
int kb_gzip_pack(const void *data, size_t size, void **out, size_t *out_size);

/* -ENOMEM also for what has more than @most bytes, -EINVAL: it is damaged. */
int kb_gzip_unpack(const void *data, size_t size, size_t most, uint8_t **out, size_t *out_size);

#endif
