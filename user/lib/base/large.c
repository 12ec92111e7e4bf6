// SPDX-License-Identifier: MIT
/* See large.h. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/large.h"

#define LARGE	((size_t)256 << 10)

void *kb_large_grow(void *memory, size_t old, size_t bytes)
{
	void *grown;

	if (bytes < LARGE)
		return realloc(memory, bytes);
	grown = old < LARGE ? mmap(NULL, bytes, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) :
			      mremap(memory, old, bytes, MREMAP_MAYMOVE);
	if (grown == MAP_FAILED)
		return NULL;
	if (old && old < LARGE)
		memcpy(grown, memory, old);
	if (old < LARGE)
		free(memory);
	return grown;
}

void kb_large_free(void *memory, size_t bytes)
{
	if (bytes < LARGE)
		free(memory);
	else
		munmap(memory, bytes);
}
