// SPDX-License-Identifier: MIT
/* libdw is opened once and never closed, because its data may be in use until the end. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>

#include "sym/lines/libdw.h"

static struct kb_libdw functions;
static bool is_there;

static void open_library(void)
{
	void *library = dlopen("libdw.so.1", RTLD_LAZY | RTLD_LOCAL);

	if (!library)
		return;
	is_there = true;
#define TAKE(name)						\
	*(void **)&functions.name = dlsym(library, #name);	\
	is_there &= functions.name != NULL;
	KB_LIBDW_FUNCTIONS(TAKE)
#undef TAKE
}

const struct kb_libdw *kb_libdw(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, open_library);
	return is_there ? &functions : NULL;
}
