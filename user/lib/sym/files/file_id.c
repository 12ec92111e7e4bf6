// SPDX-License-Identifier: MIT
/* The file is mapped for a moment, so that /proc/self/maps shows its identity. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sym/files/file_id.h"
#include "sym/files/regular.h"

#define NO_TIME_NS	2000000000ULL	/* earlier times are not real ones */

bool kb_file_id_of_line(const char *line, uintptr_t address, struct kb_device_inode *found)
{
	uintptr_t low;

	return sscanf(line, "%" SCNxPTR "-%*x %*s %*x %x:%x %" SCNu64, &low, &found->major,
		      &found->minor, &found->inode) == 4 && low == address;
}

/* Read from /proc/self/maps the identity for the mapping of @st at @address. */
static bool find_mapping(uintptr_t address, const struct stat *st, char id[KB_FILE_ID])
{
	FILE *maps = fopen("/proc/self/maps", "re");
	struct kb_device_inode inode;
	bool found = false;
	char *line = NULL;
	size_t size = 0;

	while (maps && !found && getline(&line, &size, maps) > 0)
		found = kb_file_id_of_line(line, address, &inode);
	if (found)
		snprintf(id, KB_FILE_ID, "%u:%u:%" PRIu64 ":%llu:%" PRIu64, inode.major,
			 inode.minor, inode.inode, (unsigned long long)st->st_size,
			 (uint64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec);
	free(line);
	if (maps)
		fclose(maps);
	return found;
}

bool kb_file_id_of(int fd, char id[KB_FILE_ID])
{
	bool found = false;
	struct stat st;
	void *page;

	/* No byte is read, so an empty file is not a problem. */
	page = fstat(fd, &st) == 0 ? mmap(NULL, 1, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
	if (page != MAP_FAILED) {
		found = find_mapping((uintptr_t)page, &st, id);
		munmap(page, 1);
	}
	return found;
}

bool kb_file_id(const char *path, char id[KB_FILE_ID])
{
	int fd = kb_open_regular(path, 0);
	bool found = fd >= 0 && kb_file_id_of(fd, id);

	if (fd >= 0)
		close(fd);
	return found;
}

/* The "SIZE:MTIME" at the end of an id; empty if there is none. */
static struct kb_text content_of(struct kb_text id)
{
	const char *end = id.data + id.length, *at = id.data;
	int i;

	for (i = 0; i < 3 && at; i++) {
		at = memchr(at, ':', end - at);
		at = at ? at + 1 : NULL;
	}
	return at ? (struct kb_text) { at, end - at } : kb_text(NULL);
}

bool kb_file_id_same_inode(struct kb_text a, struct kb_text b)
{
	size_t left = a.length - content_of(a).length, right = b.length - content_of(b).length;

	return left < a.length && left == right && memcmp(a.data, b.data, left) == 0;
}

bool kb_file_id_alike(struct kb_text a, struct kb_text b)
{
	struct kb_text left = content_of(a), right = content_of(b);
	const char *mtime;

	if (!left.length || left.length != right.length ||
	    memcmp(left.data, right.data, left.length) != 0)
		return false;
	mtime = memchr(left.data, ':', left.length);
	/* A character that is not a digit, or the end of the string, follows. */
	return mtime && strtoull(mtime + 1, NULL, 10) >= NO_TIME_NS;
}
