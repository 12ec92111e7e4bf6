// SPDX-License-Identifier: MIT
/*
 * kbarman: the table of its verbs. Each verb is a file of its own; this one only
 * finds it and calls it.
 */
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "cli.h"

const char *cli_verb_name;

static const struct cli_verb verbs[] = {
	{ "bundle", cmd_bundle, "save the symbols that a capture needs elsewhere" },
	{ "check", cmd_check, "say whether a file is valid, and if not what is wrong" },
	{ "convert", cmd_convert, "write a capture in another format" },
	{ "dump", cmd_dump, "print what a file says, record by record" },
	{ "help", cmd_help, "this list" },
	{ "merge", cmd_merge, "join the captures of several CPUs" },
	{ "record", cmd_record, "record a command, processes or the whole system" },
	{ "report", cmd_report, "tell where time went, who waited, and what is missing" },
	{ "script", cmd_script, "print records with names, in the shape of perf script" },
};

int cmd_help(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	printf("usage: kbarman VERB [ARGUMENTS]\n\n");
	for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++)
		printf("  %-10s %s\n", verbs[i].name, verbs[i].summary);
	printf("\n`kbarman VERB --help' says more.\n");
	return fflush(stdout) ? CLI_IMPOSSIBLE : CLI_OK;
}

int main(int argc, char **argv)
{
	if (argc < 2)
		return cli_fail("no verb: try `kbarman --help'");
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))
		return cmd_help(argc, argv);
	if (!strcmp(argv[1], "--version")) {
		printf("kbarman %s\n", KBARMAN_VERSION);
		return fflush(stdout) ? CLI_IMPOSSIBLE : CLI_OK;
	}
	for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++) {
		if (strcmp(argv[1], verbs[i].name) == 0) {
			static char name[64];

			/* What getopt_long() calls us when it complains. */
			cli_verb_name = verbs[i].name;
			snprintf(name, sizeof(name), "kbarman %s", cli_verb_name);
			argv[1] = name;
			optind = 1;
			return verbs[i].run(argc - 1, argv + 1);
		}
	}
	return cli_fail("no verb `%s': try `kbarman --help'", argv[1]);
}
