// SPDX-License-Identifier: MIT
/*
 * Verbs that are programs of their own, because of what they bring along: `kbarman push` is
 * kbarman-push, beside the tool or in $PATH. The words behind the verb are for the program.
 */
#include <errno.h>
#include <string.h>

#include "base/program.h"
#include "cli/base/cli.h"

/* Becomes the program @name, which is in the package of that name. Returns an exit status if it can't. */
static int become(const char *name, char **argv)
{
	fflush(NULL);
	kb_program_become(name, argv);
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
