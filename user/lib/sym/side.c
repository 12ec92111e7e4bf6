// SPDX-License-Identifier: MIT
/*
 * Its own name comes first. Under the name of the recording the files are a capture's that
 * was renamed, unless a capture of that name is there: then they are that one's.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sym/side.h"

const char *kb_side_name(const struct kb_barman *barman)
{
	const char *name = kb_barman_fact(barman, "name");

	return name && *name && !strchr(name, '/') ? name : NULL;
}

/* The first @length bytes of @folder, @name and @suffix, if there is such a file. */
static char *find(const char *folder, size_t length, const char *name, const char *suffix)
{
	char *path;

	if (asprintf(&path, "%.*s%s%s", (int)length, folder, name, suffix) < 0)
		return NULL;
	if (access(path, F_OK) == 0)
		return path;
	free(path);
	return NULL;
}

char *kb_side_find(const struct kb_barman *barman, const char *capture, const char *suffix)
{
	const char *name = kb_side_name(barman), *slash;
	char *path, *other;
	size_t folder;

	if (!capture || strcmp(capture, "-") == 0)
		return NULL;
	path = find("", 0, capture, suffix);
	if (path || !name)
		return path;
	slash = strrchr(capture, '/');
	folder = slash ? (size_t)(slash + 1 - capture) : 0;
	other = find(capture, folder, name, "");
	if (!other)
		path = find(capture, folder, name, suffix);
	free(other);
	return path;
}
