// SPDX-License-Identifier: MIT
/*
 * The kernel's link to a mapped file leads to the file itself, whatever became of its path. Only
 * root has the right to follow this link: for others the path remains. Identities are those of open
 * files, so nobody can replace a file between the check and its use.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <fcntl.h>
#include <unistd.h>

#include "sym/files/file_id.h"
#include "sym/files/regular.h"
#include "sym/unwind/place.h"

struct mapping {
	uint64_t low, high, offset;
};

/* Whether @mapping has the first byte of @place, at the same place of its file. */
static bool covers(const struct mapping *mapping, const struct kb_unwind_place *place)
{
	uint64_t into = place->start - mapping->low;

	return place->start >= mapping->low && place->start < mapping->high &&
	       mapping->offset + into == place->offset;
}

/* Find the kernel's mapping that @place is a part of. */
static bool find_mapping(const struct kb_unwind_place *place, struct mapping *mapping)
{
	bool found = false;
	char path[32], *line = NULL;
	size_t room = 0;
	FILE *maps;

	snprintf(path, sizeof(path), "/proc/%u/maps", place->pid);
	maps = fopen(path, "re");
	while (maps && !found && getline(&line, &room, maps) > 0)
		found = sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64, &mapping->low,
			       &mapping->high, &mapping->offset) == 3 && covers(mapping, place);
	free(line);
	if (maps)
		fclose(maps);
	return found;
}

enum fit { MAPPED, AT_THE_PATH };

/* A mapped file with other contents was written to, and the process sees these contents as well. */
static bool fits(int fd, const struct kb_unwind_place *place, enum fit fit)
{
	struct kb_text wanted = place->file;
	char id[KB_FILE_ID];

	if (!wanted.length)
		return fit == MAPPED;
	if (!kb_file_id_of(fd, id))
		return false;
	if (strlen(id) == wanted.length && memcmp(id, wanted.data, wanted.length) == 0)
		return true;
	return kb_file_id_alike(kb_text(id), wanted) ||
	       (fit == MAPPED && kb_file_id_same_inode(kb_text(id), wanted));
}

static int open_fitting(const char *path, int flags, const struct kb_unwind_place *place,
			enum fit fit)
{
	int fd = kb_open_regular(path, flags);

	if (fd < 0 || fits(fd, place, fit))
		return fd;
	close(fd);
	return -ESTALE;
}

static int open_mapping(const struct kb_unwind_place *place)
{
	struct mapping mapping;
	char path[80];

	if (!find_mapping(place, &mapping))
		return -ENOENT;
	snprintf(path, sizeof(path), "/proc/%u/map_files/%" PRIx64 "-%" PRIx64, place->pid,
		 mapping.low, mapping.high);
	return open_fitting(path, 0, place, MAPPED);
}

/* The path of an image has no links: one that is there now replaced what was recorded. */
static int open_below_root(const struct kb_unwind_place *place)
{
	char *path;
	int fd;

	if (asprintf(&path, "/proc/%u/root%s", place->pid, place->image) < 0)
		return -ENOMEM;
	fd = open_fitting(path, O_NOFOLLOW, place, AT_THE_PATH);
	free(path);
	return fd;
}

static int complain(const struct kb_unwind_place *place, int code, struct kb_error *err)
{
	if (code == -ENOENT)
		return kb_error_set(err, code, KB_NO_OFFSET, "%s: there is no such file, and no "
				    "process that has it mapped", place->image);
	if (code == -ESTALE)
		return kb_error_set(err, code, KB_NO_OFFSET,
				    "%s is not the file that was recorded", place->image);
	if (code == -ENOTSUP)
		return kb_error_set(err, -ENOEXEC, KB_NO_OFFSET, "%s is not a regular file",
				    place->image);
	return kb_error_set(err, code, KB_NO_OFFSET, "%s can't be read: %s", place->image,
			    strerror(-code));
}

int kb_unwind_place_open(const struct kb_unwind_place *place, struct kb_error *err)
{
	int fd = -ENOENT;

	if (place->image[0] == '/') {
		fd = place->pid ? open_mapping(place) : -ENOENT;
		if (fd < 0 && place->pid)
			fd = open_below_root(place);
		if (fd < 0)
			fd = open_fitting(place->image, O_NOFOLLOW, place, AT_THE_PATH);
	}
	return fd < 0 ? complain(place, fd, err) : fd;
}
