// SPDX-License-Identifier: MIT
/*
 * An entry is the block of the rows. It gets its name when it is whole. Its time of change is that
 * of its last use.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "base/io/create.h"
#include "base/io/whole.h"
#include "sym/files/cache_folder.h"
#include "sym/unwind/cache.h"

#define NAME	(KB_BUILD_ID_TEXT + 31)	/* bytes */

/*
 * Whether nobody else can have made the contents of the file. Owners mean little on a file system
 * that is mounted without set-user-ID programs: it may be another user's, or on a stick.
 */
static bool is_trusted(int fd, const struct stat *st)
{
	struct statvfs fs;

	return S_ISREG(st->st_mode) && (!st->st_uid || st->st_uid == geteuid()) &&
	       !(st->st_mode & (S_IWGRP | S_IWOTH)) && !fstatvfs(fd, &fs) &&
	       !(fs.f_flag & ST_NOSUID);
}

bool kb_unwind_cache_open(struct kb_unwind_cache *cache, int fd)
{
	struct stat st;

	if (fstat(fd, &st) || !is_trusted(fd, &st))
		return false;
	*cache = (struct kb_unwind_cache) {
		.folder = kb_cache_folder_open("unwind"), .limit = KB_UNWIND_CACHE_LIMIT,
		.size = (uint64_t)st.st_size,
	};
	return cache->folder >= 0;
}

void kb_unwind_cache_close(struct kb_unwind_cache *cache)
{
	close(cache->folder);
}

/* The name of the entry; false: a file without a build-id has none. */
static bool name_entry(const struct kb_unwind_cache *cache, const struct kb_build_id *build_id,
		       char name[NAME])
{
	size_t length = kb_build_id_text(name, build_id);

	snprintf(name + length, NAME - length, "-%" PRIu64, cache->size);
	return build_id->length;
}

/* ---- reading ---- */

static bool take_entry(const struct kb_unwind_cache *cache, int fd, struct kb_unwind_rows *rows)
{
	struct stat st;
	void *block;

	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_uid != geteuid() || st.st_size <= 0 ||
	    (uint64_t)st.st_size > cache->limit)
		return false;
	block = malloc((size_t)st.st_size);
	if (!block || kb_read_whole(fd, block, (size_t)st.st_size) != st.st_size ||
	    kb_unwind_rows_take(rows, block, (size_t)st.st_size, NULL)) {
		free(block);
		return false;
	}
	return true;
}

bool kb_unwind_cache_get(const struct kb_unwind_cache *cache, const struct kb_build_id *build_id,
			 struct kb_unwind_rows *rows)
{
	char name[NAME];
	bool found;
	int fd;

	if (!name_entry(cache, build_id, name))
		return false;
	fd = openat(cache->folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return false;
	found = take_entry(cache, fd, rows);
	if (found)
		futimens(fd, NULL);
	close(fd);
	return found;
}

/* ---- writing ---- */

/* Other recorders may write the same entry at this moment. */
static void name_temporary(char name[NAME])
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	snprintf(name, NAME, "new-%d-%lld-%ld", (int)getpid(), (long long)now.tv_sec,
		 now.tv_nsec);
}

void kb_unwind_cache_put(const struct kb_unwind_cache *cache, const struct kb_build_id *build_id,
			 const struct kb_unwind_rows *rows)
{
	uint64_t size = rows->header->size;
	char name[NAME], temporary[NAME];
	bool whole;
	int fd;

	if (size > cache->limit || !name_entry(cache, build_id, name))
		return;
	name_temporary(temporary);
	fd = kb_create(cache->folder, temporary, KB_CREATE_FIRST, 0600);
	if (fd < 0)
		return;
	whole = !kb_write_whole(fd, rows->header, size);
	whole &= !close(fd);
	if (whole && !renameat(cache->folder, temporary, cache->folder, name))
		kb_cache_folder_limit(cache->folder, cache->limit);
	else
		unlinkat(cache->folder, temporary, 0);
}
