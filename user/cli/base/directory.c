// SPDX-License-Identifier: MIT
/* Outputs that are directories: see directory.h. They contain files, and directories of files. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/base/cli.h"
#include "cli/base/directory.h"

/* Calls @each for each entry of @path, below @at. Returns 0, or -errno if @path can't be read. */
static int for_each_file(int at, const char *path,
			 void (*each)(int fd, const char *name, void *context), void *context)
{
	int fd = openat(at, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;

	if (!dir) {
		int error = -errno;

		if (fd >= 0)
			close(fd);
		return error;
	}
	while ((entry = readdir(dir)))
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			each(dirfd(dir), entry->d_name, context);
	closedir(dir);
	return 0;
}

static void count_file(int fd, const char *name, void *context)
{
	(void)fd;
	(void)name;
	++*(unsigned long *)context;
}

/* @context: how many directories deep it may go. */
static void remove_file(int fd, const char *name, void *context)
{
	unsigned int *depth = context;

	if (!unlinkat(fd, name, 0) || !*depth)
		return;
	--*depth;
	for_each_file(fd, name, remove_file, depth);
	++*depth;
	unlinkat(fd, name, AT_REMOVEDIR);
}

static void release(struct cli_directory *directory)
{
	free(directory->path);
	free(directory->temporary);
	*directory = (struct cli_directory) { 0 };
}

/* Removes slashes at the end: they would be in the middle of the temporary name. */
static char *trimmed(const char *path)
{
	size_t length = strlen(path);

	while (length > 1 && path[length - 1] == '/')
		length--;
	return strndup(path, length);
}

int cli_directory_open(struct cli_directory *directory, const char *path)
{
	unsigned long files = 0;
	int error;

	*directory = (struct cli_directory) { .path = trimmed(path) };
	if (!directory->path || asprintf(&directory->temporary, "%s.XXXXXX", directory->path) < 0) {
		directory->temporary = NULL;
		release(directory);
		return cli_fail("out of memory");
	}
	error = for_each_file(AT_FDCWD, directory->path, count_file, &files);
	if (files || (error && error != -ENOENT)) {
		cli_warn("%s exists already: remove it, or give another name with -o",
			 path);
		release(directory);
		return CLI_IMPOSSIBLE;
	}
	if (!mkdtemp(directory->temporary)) {
		cli_warn("can't make %s: %s", path, strerror(errno));
		release(directory);
		return CLI_IMPOSSIBLE;
	}
	/* A file that grows too large must be an error, after which the directory is removed. */
	signal(SIGXFSZ, SIG_IGN);
	return 0;
}

int cli_directory_commit(struct cli_directory *directory)
{
	mode_t mask = umask(0);
	int error = 0;

	umask(mask);
	if (chmod(directory->temporary, 0777 & ~mask) ||
	    rename(directory->temporary, directory->path))
		error = errno;
	if (error) {
		cli_warn("can't write %s: %s", directory->path, strerror(error));
		cli_directory_abandon(directory);
		return CLI_IMPOSSIBLE;
	}
	release(directory);
	return 0;
}

void cli_directory_abandon(struct cli_directory *directory)
{
	unsigned int depth = 1;

	for_each_file(AT_FDCWD, directory->temporary, remove_file, &depth);
	rmdir(directory->temporary);
	release(directory);
}
