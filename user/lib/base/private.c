// SPDX-License-Identifier: MIT
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/private.h"

#define MODE	0640
#define OTHERS	0007

int kb_private_new(const char *path)
{
	int fd;

	if (unlink(path) && errno != ENOENT)
		return -errno;
	fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, MODE);
	if (fd < 0)
		return -errno;
	return fd;
}

int kb_private_open(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, MODE);
	struct stat st;
	int error = 0;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st))
		error = -errno;
	else if (!S_ISREG(st.st_mode) || st.st_nlink > 1)
		error = -EPERM;
	/* one that an older version left; on a file system without modes it is good all the same */
	else if (st.st_mode & OTHERS && fchmod(fd, st.st_mode & ~(mode_t)(S_IFMT | OTHERS)))
		errno = 0;
	if (!error)
		return fd;
	close(fd);
	return error;
}
