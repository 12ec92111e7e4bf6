// SPDX-License-Identifier: MIT
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io/create.h"

#define OTHERS	0007

/* Whether the owner of the folder is @user, who then may do with its files what he likes. */
static bool is_in_folder_of(int folder, const char *path, uid_t user)
{
	const char *slash = strrchr(path, '/');
	size_t length = slash ? (size_t)(slash - path) + 1 : 0;
	char text[PATH_MAX] = ".";
	struct stat st;

	if (length >= sizeof(text))
		return false;
	if (length) {
		memcpy(text, path, length);
		text[length] = '\0';
	}
	return !fstatat(folder, text, &st, 0) && st.st_uid == user;
}

static int check_same(int fd, int folder, const char *path, mode_t mode)
{
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_nlink > 1 ||
	    (st.st_uid != geteuid() && !is_in_folder_of(folder, path, st.st_uid)))
		return -EPERM;
	/* one that an older version left; on a file system without modes it is good all the same */
	if (st.st_mode & OTHERS & ~mode && fchmod(fd, st.st_mode & 07777 & ~(OTHERS & ~mode)))
		errno = 0;
	return 0;
}

int kb_create(int folder, const char *path, enum kb_create how, mode_t mode)
{
	static const int flags[] = {
		[KB_CREATE_FIRST] = O_RDWR | O_EXCL | O_NOFOLLOW,
		[KB_CREATE_NEW] = O_RDWR | O_EXCL | O_NOFOLLOW,
		[KB_CREATE_SAME] = O_RDWR | O_NOFOLLOW | O_NONBLOCK,
		[KB_CREATE_APPEND] = O_WRONLY | O_APPEND,
	};
	int fd, error;

	if (how == KB_CREATE_NEW && unlinkat(folder, path, 0) && errno != ENOENT)
		return -errno;
	fd = openat(folder, path, flags[how] | O_CREAT | O_CLOEXEC, mode);
	if (fd < 0)
		return -errno;
	error = how == KB_CREATE_SAME ? check_same(fd, folder, path, mode) : 0;
	if (!error)
		return fd;
	close(fd);
	return error;
}
