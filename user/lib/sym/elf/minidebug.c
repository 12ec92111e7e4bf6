// SPDX-License-Identifier: MIT
/*
 * liblzma is opened when the first such section is read: few machines have such files. It is
 * never closed.
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "sym/elf/lzma.h"
#include "sym/elf/minidebug.h"

#define MAX_UNPACKED	(64U << 20)	/* bytes; real ones have a few hundred KiB */
#define MAX_MEMORY	(128U << 20)	/* of the decompressor */

static kb_lzma_decode decode;

/* Decompress, with a growing buffer. */
static int unpack(const void *data, size_t size, uint8_t **out, size_t *unpacked)
{
	size_t room = size < 1 << 16 ? 1 << 19 : size < MAX_UNPACKED / 8 ? size * 8 : MAX_UNPACKED;

	for (;;) {
		uint64_t limit = MAX_MEMORY;
		size_t in_at = 0, out_at = 0;
		uint8_t *buffer = malloc(room);
		int ret;

		if (!buffer)
			return -ENOMEM;
		ret = decode(&limit, 0, NULL, data, &in_at, size, buffer, &out_at, room);
		if (ret == KB_LZMA_OK) {
			*out = buffer;
			*unpacked = out_at;
			return 0;
		}
		free(buffer);
		if (ret != KB_LZMA_BUF_ERROR || room == MAX_UNPACKED)
			return -EBADMSG;
		room = room < MAX_UNPACKED / 4 ? room * 4 : MAX_UNPACKED;
	}
}

static void open_library(void)
{
	void *library = dlopen("liblzma.so.5", RTLD_LAZY | RTLD_LOCAL);

	if (library)
		*(void **)&decode = dlsym(library, "lzma_stream_buffer_decode");
	/* cppcheck-suppress resourceLeak ; stays open until the program ends */
}

void kb_minidebug_prepare(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, open_library);
}

int kb_minidebug_unpack(const void *data, size_t size, uint8_t **out, size_t *unpacked)
{
	*out = NULL;
	*unpacked = 0;
	kb_minidebug_prepare();
	return decode ? unpack(data, size, out, unpacked) : -ENOSYS;
}
