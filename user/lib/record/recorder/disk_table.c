// SPDX-License-Identifier: MIT
/* Links are "MAJOR:MINOR -> ../../devices/…/NAME". Source: Documentation/ABI/testing/sysfs-dev. */
#include <dirent.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "record/recorder/disk_table.h"

/* False: it is a partition, or has no name. */
static bool read_name(const char *folder, const char *link, char name[KB_DISK_TABLE_NAME])
{
	char path[PATH_MAX], target[PATH_MAX];
	const char *base;
	ssize_t length;

	snprintf(path, sizeof(path), "%s/%s/partition", folder, link);
	if (!access(path, F_OK))
		return false;
	snprintf(path, sizeof(path), "%s/%s", folder, link);
	length = readlink(path, target, sizeof(target) - 1);
	if (length <= 0)
		return false;
	target[length] = '\0';
	base = strrchr(target, '/');
	base = base ? base + 1 : target;
	if (!*base || strlen(base) >= KB_DISK_TABLE_NAME)
		return false;
	strcpy(name, base);
	return true;
}

int kb_disk_table_read(const char *sys, int (*take)(void *context, uint32_t device, const char *name),
		       void *context)
{
	const char *folder = sys ?: "/sys/dev/block";
	DIR *links = opendir(folder);
	char name[KB_DISK_TABLE_NAME];
	const struct dirent *link;
	unsigned int major, minor;
	uint32_t nr = 0;
	int ret = 0;

	while (links && !ret && nr < KB_DISK_TABLE_MAX && (link = readdir(links))) {
		if (sscanf(link->d_name, "%u:%u", &major, &minor) != 2 || major >= 1U << 12 ||
		    minor >= 1U << 20 || !read_name(folder, link->d_name, name))
			continue;
		nr++;
		ret = take(context, major << 20 | minor, name);
	}
	if (links)
		closedir(links);
	return ret;
}
