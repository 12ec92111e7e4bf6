// SPDX-License-Identifier: MIT
/*
 * Verbs that are programs of their own, because of what they bring along: `kbarman push` is
 * kbarman-push, beside the tool or in $PATH. The words behind the verb are for the program.
 */
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "cli/base/cli.h"

/* The program @name beside the tool. False: it is not known where that is. */
static bool beside(const char *name, char path[PATH_MAX])
{
	char tool[PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", tool, sizeof(tool) - 1);
	char *slash;

	if (length < 0)
		return false;
	tool[length] = '\0';
	slash = strrchr(tool, '/');
	return slash && snprintf(path, PATH_MAX, "%.*s/%s", (int)(slash - tool), tool, name) < PATH_MAX;
}

/* Becomes the program @name, which is in the package of that name. Returns an exit status if it can't. */
static int become(const char *name, char **argv)
{
	char path[PATH_MAX];

	fflush(NULL);
	if (beside(name, path))
		execv(path, argv);
	execvp(name, argv);
	if (errno != ENOENT)
		return cli_fail("can't start '%s': %s", name, strerror(errno));
	return cli_fail("this verb is the program '%s', which is neither beside kbarman nor in $PATH: install the "
			"package '%s'", name, name);
}

int cmd_push(int argc, char **argv)
{
	(void)argc;
	return become("kbarman-push", argv);
}
