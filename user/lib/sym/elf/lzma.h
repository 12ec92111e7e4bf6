/* SPDX-License-Identifier: MIT */
/* What minidebug.c says of liblzma, whose header a build need not have; a test compares it. */
#ifndef KB_LIB_SYM_ELF_LZMA_H
#define KB_LIB_SYM_ELF_LZMA_H

#include <stddef.h>
#include <stdint.h>

enum {
	KB_LZMA_OK = 0,
	KB_LZMA_BUF_ERROR = 10,		/* the output is too small, or the input is cut off */
};

/* lzma_stream_buffer_decode() of lzma/container.h. The last arguments are in and out positions and sizes. */
typedef int (*kb_lzma_decode)(uint64_t *memory_limit, uint32_t flags, const void *allocator,
			      const uint8_t *in, size_t *in_at, size_t in_size, uint8_t *out,
			      size_t *out_at, size_t out_size);

#endif
