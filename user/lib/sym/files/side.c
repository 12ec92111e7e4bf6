// SPDX-License-Identifier: MIT
/*
 * The present name of the capture comes first. If the capture was renamed, the files may still
 * have its name at the recording; they are used unless there is a capture of that name, which
 * then owns them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sym/files/side.h"

const char *kb_side_name(const struct kb_barman *barman)
{
	const char *name = kb_barman_fact(barman, "name");

	return name && *name && !strchr(name, '/') ? name : NULL;
}

/* The path of @length bytes of @folder, @name and @suffix, if there is such a file. */
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
