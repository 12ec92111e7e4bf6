/* SPDX-License-Identifier: MIT */
/*
 * Memory that grows to any size. What is large is mapped, so it grows without a copy and goes back to
 * the system at once; realloc() does so only as long as the process has freed nothing large.
 */
#ifndef KB_LIB_BASE_LARGE_H
#define KB_LIB_BASE_LARGE_H

#include <stddef.h>

/*
 * Make @memory, which has @old bytes, as large as @bytes, which are more. NULL and 0 at first. Returns
 * the memory, which may have moved; NULL without memory: then nothing changes.
 */
void *kb_large_grow(void *memory, size_t old, size_t bytes);

/* Free @memory of @bytes; NULL is allowed. */
void kb_large_free(void *memory, size_t bytes);

#endif
