// SPDX-License-Identifier: MIT
/* What all verbs know of the command line: which verb runs, and how much it says. */
#include "cli/base/cli.h"

const struct cli_verb *cli_verbs;
const char *cli_verb_name;

static int verbosity;

int cli_verbosity(void)
{
	return verbosity;
}

void cli_louder(void)
{
	verbosity++;
}

void cli_quiet(void)
{
	verbosity = -1;
}
