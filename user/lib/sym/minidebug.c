// SPDX-License-Identifier: MIT
/* liblzma is opened when the first such section comes: few machines have any. */
#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sym/minidebug.h"

#define MAX_UNPACKED	(64U << 20)	/* bytes; real ones have a few hundred KiB */
#define MAX_MEMORY	(128U << 20)	/* of the unpacker */
#define LZMA_OK		0
#define LZMA_BUF_ERROR	10		/* the output is too small, or the input cut */

/* As in lzma/container.h; the last four but one are in and out positions. */
typedef int (*buffer_decode)(uint64_t *memory_limit, uint32_t flags, const void *allocator,
			     const uint8_t *in, size_t *in_at, size_t in_size, uint8_t *out,
			     size_t *out_at, size_t out_size);

static int write_all(int fd, const uint8_t *data, size_t size)
{
	while (size) {
		ssize_t written = write(fd, data, size);

		if (written <= 0)
			return written ? -errno : -EIO;
		data += written;
		size -= written;
	}
	return 0;
}

/* Unpack with more and more room; @out is to be freed. */
static int unpack(buffer_decode decode, const void *data, size_t size, uint8_t **out,
		  size_t *unpacked)
{
	size_t room = size < 1 << 16 ? 1 << 19 : size * 8;
	int ret = LZMA_BUF_ERROR;

	*out = NULL;
	for (; ret == LZMA_BUF_ERROR && room <= MAX_UNPACKED; room *= 4) {
		uint64_t limit = MAX_MEMORY;
		size_t in_at = 0;

		free(*out);
		*out = malloc(room);
		*unpacked = 0;
		if (!*out)
			return -ENOMEM;
		ret = decode(&limit, 0, NULL, data, &in_at, size, *out, unpacked, room);
	}
	return ret == LZMA_OK ? 0 : -EBADMSG;
}

int kb_minidebug_unpack(const void *data, size_t size)
{
	void *library = dlopen("liblzma.so.5", RTLD_LAZY | RTLD_LOCAL);
	buffer_decode decode;
	uint8_t *out = NULL;
	size_t unpacked = 0;
	int fd = -ENOSYS, ret;

	if (!library)
		return -ENOSYS;
	*(void **)&decode = dlsym(library, "lzma_stream_buffer_decode");
	if (decode) {
		ret = unpack(decode, data, size, &out, &unpacked);
		fd = ret ? ret : memfd_create("minidebug", MFD_CLOEXEC);
		if (!ret && fd < 0)
			fd = -errno;
		ret = fd < 0 ? 0 : write_all(fd, out, unpacked);
		if (ret) {
			close(fd);
			fd = ret;
		}
		free(out);
	}
	dlclose(library);
	return fd;
}
