// SPDX-License-Identifier: MIT
/* What the library says of liblzma and libzstd, which it opens, is what their own headers say. */
#if __has_include(<lzma.h>)
#include <lzma.h>
#endif
#if __has_include(<zstd.h>)
#include <zstd.h>
#endif

#include "format/zstd.h"
#include "sym/elf/lzma.h"

#include "../lib/tap.h"

/* Whether a function has this type. Ours have `void *` for what only the library knows. */
#define HAS_TYPE(function, ...)	__builtin_types_compatible_p(__typeof__(&(function)), __VA_ARGS__)

#ifdef LZMA_VERSION
static void liblzma_is_as_it_is_called(void)
{
	tap_is(KB_LZMA_OK, LZMA_OK, "lzma_ok_is_that_of_liblzma");
	tap_is(KB_LZMA_BUF_ERROR, LZMA_BUF_ERROR, "lzma_buf_error_is_that_of_liblzma");
	tap_is(sizeof(lzma_ret), sizeof(int), "results_of_liblzma_are_ints");
	tap_ok(HAS_TYPE(lzma_stream_buffer_decode,
			lzma_ret (*)(uint64_t *, uint32_t, const lzma_allocator *, const uint8_t *,
				     size_t *, size_t, uint8_t *, size_t *, size_t)) &&
	       __builtin_types_compatible_p(kb_lzma_decode,
			int (*)(uint64_t *, uint32_t, const void *, const uint8_t *, size_t *, size_t,
				uint8_t *, size_t *, size_t)),
	       "arguments_of_liblzma_are_those_that_it_takes");
}
#else
static void liblzma_is_as_it_is_called(void)
{
	printf("ok %d - liblzma_is_as_it_is_called # SKIP there is no lzma.h here\n", ++tap_count);
}
#endif

#ifdef ZSTD_VERSION_NUMBER
#define OURS(name)	(((struct kb_zstd *)0)->name)

static void libzstd_is_as_it_is_called(void)
{
	tap_ok(HAS_TYPE(ZSTD_compressBound, __typeof__(OURS(compressBound))) &&
	       HAS_TYPE(ZSTD_decompress, __typeof__(OURS(decompress))) &&
	       HAS_TYPE(ZSTD_isError, __typeof__(OURS(isError))),
	       "functions_without_a_context_are_those_of_libzstd");
	tap_ok(HAS_TYPE(ZSTD_createCCtx, ZSTD_CCtx *(*)(void)) &&
	       HAS_TYPE(ZSTD_freeCCtx, size_t (*)(ZSTD_CCtx *)) &&
	       HAS_TYPE(ZSTD_compressCCtx,
			size_t (*)(ZSTD_CCtx *, void *, size_t, const void *, size_t, int)),
	       "functions_with_a_context_are_those_of_libzstd");
}
#else
static void libzstd_is_as_it_is_called(void)
{
	printf("ok %d - libzstd_is_as_it_is_called # SKIP there is no zstd.h here\n", ++tap_count);
}
#endif

int main(void)
{
	liblzma_is_as_it_is_called();
	libzstd_is_as_it_is_called();
	return tap_done();
}
