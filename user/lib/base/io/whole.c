// SPDX-License-Identifier: MIT
#include <errno.h>
#include <unistd.h>

#include "base/io/whole.h"

ssize_t kb_read_whole(int fd, void *data, size_t size)
{
	size_t got = 0;

	while (got < size) {
		ssize_t nr = read(fd, (char *)data + got, size - got);

		if (nr < 0 && errno == EINTR)
			continue;
		if (nr < 0)
			return -errno;
		if (nr == 0)
			break;
		got += (size_t)nr;
	}
	return (ssize_t)got;
}

int kb_write_whole(int fd, const void *data, size_t size)
{
	const char *at = data;

	while (size) {
		ssize_t nr = write(fd, at, size);

		if (nr < 0 && errno == EINTR)
			continue;
		if (nr <= 0)
			return nr ? -errno : -EIO;
		at += nr;
		size -= (size_t)nr;
	}
	return 0;
}
