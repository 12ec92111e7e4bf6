/* SPDX-License-Identifier: MIT */
/* libzstd, opened when it is first needed: the tool runs without it. */
#ifndef KB_LIB_FORMAT_ZSTD_H
#define KB_LIB_FORMAT_ZSTD_H

#include <stddef.h>

/* As in zstd.h. */
struct kb_zstd {
	void *(*createCCtx)(void);
	size_t (*freeCCtx)(void *context);
	size_t (*compressBound)(size_t size);
	size_t (*compressCCtx)(void *context, void *to, size_t room, const void *from, size_t size,
			       int level);
	size_t (*decompress)(void *to, size_t room, const void *from, size_t size);
	void *(*createDCtx)(void);
	size_t (*freeDCtx)(void *context);
	size_t (*decompressDCtx)(void *context, void *to, size_t room, const void *from,
				 size_t size);
	unsigned int (*isError)(size_t code);
};

/* NULL: it is not here. */
const struct kb_zstd *kb_zstd(void);

#endif
