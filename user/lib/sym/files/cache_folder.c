// SPDX-License-Identifier: MIT
/*
 * Folders are entered one by one, and each has to be this user's own: root may run with the home of
 * somebody else, who could point it anywhere.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "sym/files/cache_folder.h"

#define FOLDER	(O_RDONLY | O_DIRECTORY | O_CLOEXEC)

/* Only @fd if it is of this user, and others have none of the rights @mode; else close it. */
static int only_own(int fd, mode_t mode)
{
	struct stat st;

	if (fd >= 0 && (fstat(fd, &st) || st.st_uid != geteuid() || st.st_mode & mode)) {
		close(fd);
		fd = -1;
	}
	return fd;
}

/* Open @path, which is made if it is missing. Its last part may be a link of the user. */
static int open_path(const char *path)
{
	int fd = path[0] == '/' ? open(path, FOLDER) : -1;

	if (fd < 0 && path[0] == '/' && mkdir(path, 0700) == 0)
		fd = open(path, FOLDER);
	return only_own(fd, 0);
}

static int open_base(void)
{
	const char *cache = secure_getenv("XDG_CACHE_HOME"), *home = secure_getenv("HOME");
	char *path;
	int fd;

	if (cache && *cache == '/')
		return open_path(cache);
	if (!home || asprintf(&path, "%s/.cache", home) < 0)
		return -1;
	fd = open_path(path);
	free(path);
	return fd;
}

/* The folder @name of @parent, which is closed. */
static int enter(int parent, const char *name, mode_t mode)
{
	int fd;

	if (parent < 0)
		return -1;
	mkdirat(parent, name, 0700);
	fd = openat(parent, name, FOLDER | O_NOFOLLOW);
	close(parent);
	return only_own(fd, mode);
}

int kb_cache_folder_open(const char *name)
{
	return enter(enter(open_base(), "kbarman", 0), name, S_IWGRP | S_IWOTH);
}

/* ---- its limit ---- */

struct entry {
	struct timespec changed;
	uint64_t bytes;
	char *name;
};

struct entries {
	struct entry *rows;
	size_t nr, max;
	uint64_t bytes;
};

static void add_entry(struct entries *entries, int folder, const char *name)
{
	struct stat st;

	if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode) ||
	    !KB_ARRAY_ROOM(entries->rows, entries->max, entries->nr + 1))
		return;
	entries->bytes += (uint64_t)st.st_size;
	entries->rows[entries->nr++] = (struct entry) {
		.changed = st.st_mtim, .bytes = (uint64_t)st.st_size, .name = strdup(name),
	};
}

static void read_entries(struct entries *entries, int folder)
{
	int copy = openat(folder, ".", FOLDER);
	DIR *stream = copy >= 0 ? fdopendir(copy) : NULL;
	const struct dirent *entry;

	while (stream && (entry = readdir(stream)))
		add_entry(entries, folder, entry->d_name);
	if (stream)
		closedir(stream);
	else if (copy >= 0)
		close(copy);
}

static int by_age(const void *left, const void *right)
{
	const struct timespec *a = &((const struct entry *)left)->changed;
	const struct timespec *b = &((const struct entry *)right)->changed;

	if (a->tv_sec != b->tv_sec)
		return a->tv_sec < b->tv_sec ? -1 : 1;
	return (a->tv_nsec > b->tv_nsec) - (a->tv_nsec < b->tv_nsec);
}

void kb_cache_folder_limit(int folder, uint64_t limit)
{
	struct entries entries = { 0 };
	size_t i;

	read_entries(&entries, folder);
	if (entries.bytes > limit)
		qsort(entries.rows, entries.nr, sizeof(*entries.rows), by_age);
	for (i = 0; i < entries.nr; i++) {
		struct entry *entry = &entries.rows[i];

		if (entries.bytes > limit && entry->name && !unlinkat(folder, entry->name, 0))
			entries.bytes -= entry->bytes;
		free(entry->name);
	}
	free(entries.rows);
}
