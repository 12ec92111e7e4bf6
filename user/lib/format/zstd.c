// SPDX-License-Identifier: MIT
/* libzstd is opened once and never closed. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>

#include "format/zstd.h"

static struct kb_zstd functions;
static bool is_there;

static void open_library(void)
{
	void *library = dlopen("libzstd.so.1", RTLD_LAZY | RTLD_LOCAL);

	if (!library)
		return;
	is_there = true;
#define TAKE(name)							\
	*(void **)&functions.name = dlsym(library, "ZSTD_" #name);	\
	is_there &= functions.name != NULL
	TAKE(createCCtx);
	TAKE(freeCCtx);
	TAKE(compressBound);
	TAKE(compressCCtx);
	TAKE(decompress);
	TAKE(createDCtx);
	TAKE(freeDCtx);
	TAKE(decompressDCtx);
	TAKE(isError);
#undef TAKE
	/* cppcheck-suppress resourceLeak ; stays open until the program ends */
}

const struct kb_zstd *kb_zstd(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, open_library);
	return is_there ? &functions : NULL;
}
