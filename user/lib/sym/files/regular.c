// SPDX-License-Identifier: MIT
/*
 * O_PATH gives a descriptor without opening the file. The kind of the file is checked first.
 * Then the file is opened through the descriptor, so nobody can replace the file in between.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sym/files/regular.h"

static int check(int fd)
{
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	return S_ISREG(st.st_mode) ? 0 : -ENOTSUP;
}

int kb_open_regular(const char *path, int flags)
{
	int place = open(path, O_PATH | O_CLOEXEC | flags), fd = -1, ret;
	char link[32];

	if (place < 0)
		return -errno;
	ret = check(place);
	if (!ret) {
		snprintf(link, sizeof(link), "/proc/self/fd/%d", place);
		fd = open(link, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			ret = -errno;
	}
	close(place);
	/* Without /proc the file is opened by its path, so it may have been replaced. */
	if (ret == -ENOENT) {
		fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | flags);
		ret = fd < 0 ? -errno : check(fd);
		if (ret && fd >= 0)
			close(fd);
	}
	return ret ? ret : fd;
}
