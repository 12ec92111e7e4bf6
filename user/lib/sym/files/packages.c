// SPDX-License-Identifier: MIT
/*
 * PACKAGE.list or PACKAGE:ARCHITECTURE.list has the paths of a package, one on each line. A
 * package may still have a path in /lib that is /usr/lib today: /usr is left out of both.
 */
#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sym/files/packages.h"
#include "sym/files/regular.h"

#define LISTS	"/var/lib/dpkg/info"

static const char *without_usr(const char *path)
{
	return strncmp(path, "/usr/", 5) == 0 ? path + 4 : path;
}

static int compare(const void *a, const void *b)
{
	return strcmp(without_usr(*(const char *const *)a), without_usr(*(const char *const *)b));
}

static bool has_one(FILE *list, const char **paths, size_t nr)
{
	char line[4096];

	while (fgets(line, sizeof(line), list)) {
		const char *path = line;

		line[strcspn(line, "\n")] = '\0';
		if (bsearch(&path, paths, nr, sizeof(*paths), compare))
			return true;
	}
	return false;
}

static FILE *open_list(const char *root, const char *name)
{
	char path[4096];
	FILE *list = NULL;
	int fd = -1;

	if (snprintf(path, sizeof(path), "%s" LISTS "/%s", root, name) < (int)sizeof(path))
		fd = kb_open_regular(path, 0);
	if (fd >= 0)
		list = fdopen(fd, "r");
	if (fd >= 0 && !list)
		/* cppcheck-suppress doubleFree ; fdopen() that fails leaves it open */
		close(fd);
	return list;
}

static int is_list(const struct dirent *entry)
{
	size_t length = strlen(entry->d_name);

	return length > 5 && strcmp(entry->d_name + length - 5, ".list") == 0;
}

void kb_packages_of(const char *root, const char **paths, size_t nr,
		    void (*found)(void *context, const char *package), void *context)
{
	struct dirent **names = NULL;
	char path[4096];
	int nr_names = 0;

	if (nr && snprintf(path, sizeof(path), "%s" LISTS, root) < (int)sizeof(path))
		nr_names = scandir(path, &names, is_list, alphasort);
	if (nr_names > 0)
		qsort(paths, nr, sizeof(*paths), compare);
	for (int i = 0; i < nr_names; i++) {
		char *name = names[i]->d_name;
		FILE *list = open_list(root, name);
		bool has = list && has_one(list, paths, nr);

		if (list)
			fclose(list);
		name[strcspn(name, ":")] = '\0';
		if (is_list(names[i]))
			name[strlen(name) - 5] = '\0';
		if (has)
			found(context, name);
		free(names[i]);
	}
	free(names);
}
