// SPDX-License-Identifier: MIT
/* The words behind a verb that are no options. */
#include <errno.h>
#include <unistd.h>

#include "cli.h"

const char *cli_input(const char *given, int argc, char **argv, const char *otherwise)
{
	if (!given && optind < argc)
		given = argv[optind++];
	if (optind < argc) {
		cli_fail("one FILE at a time: leave out '%s'", argv[optind]);
		return NULL;
	}
	if (given)
		return given;
	if (access(otherwise, F_OK) && errno == ENOENT) {
		cli_fail("there is no %s here: give the name of a capture", otherwise);
		return NULL;
	}
	return otherwise;
}
