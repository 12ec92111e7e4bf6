// SPDX-License-Identifier: MIT
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/program.h"

/* The program @name beside this one. False: it is not known where that is. */
static bool beside(const char *name, char path[PATH_MAX])
{
	char own[PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", own, sizeof(own) - 1);
	char *slash;

	if (length < 0)
		return false;
	own[length] = '\0';
	slash = strrchr(own, '/');
	return slash && snprintf(path, PATH_MAX, "%.*s/%s", (int)(slash - own), own, name) < PATH_MAX;
}

void kb_program_become(const char *name, char *const *argv)
{
	char path[PATH_MAX];

	if (beside(name, path))
		execv(path, argv);
	execvp(name, argv);
}
