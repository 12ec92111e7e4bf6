// SPDX-License-Identifier: MIT
/*
 * kbarman: the table of verbs. Each verb has a file of its own. This file finds the verb and calls
 * it.
 */
#include <stdio.h>
#include <string.h>

#include "cli/base/cli.h"

static const struct cli_verb verbs[] = {
	{ "annotate", cmd_annotate, "write a mark into the running recording" },
	{ "bundle", cmd_bundle, "save symbols with a capture, for other machines" },
	{ "check", cmd_check, "check whether a file is valid" },
	{ "convert", cmd_convert, "convert a capture to another format" },
	{ "diff", cmd_diff, "show what differs between captures, and how sure that is" },
	{ "doctor", cmd_doctor, "check what recording needs, and say how to fix it" },
	{ "dump", cmd_dump, "print everything that a file contains" },
	{ "flight", cmd_flight, "record in the background and keep the newest seconds" },
	{ "help", cmd_help, "print this list, or the options of a verb: help VERB" },
	{ "info", cmd_info, "print a summary of a capture" },
	{ "list", cmd_list, "list the events that this machine can count" },
	{ "merge", cmd_merge, "merge the captures of several CPUs" },
#ifndef KBARMAN_WITHOUT_push
	{ "push", cmd_push, "send captures to a server of profiles (OpenTelemetry, Pyroscope)" },
#endif
#ifndef KBARMAN_WITHOUT_query
	{ "query", cmd_query, "answer questions in SQL about captures" },
#endif
	{ "record", cmd_record, "record a command, processes or the whole system" },
	{ "recover", cmd_recover, "make a capture from an interrupted recording" },
	{ "report", cmd_report, "show where time went, which tasks waited, what is missing" },
	{ "script", cmd_script, "print records with names, in the format of perf script" },
	{ "snapshot", cmd_snapshot, "write what a recording in overwrite mode keeps now" },
#ifndef KBARMAN_WITHOUT_stat
	{ "stat", cmd_stat, "count events in a command, processes or the system" },
#endif
	{ "top", cmd_top, "show where time goes now" },
	{ "version", cmd_version, "print the version and what this build can do" },
	{ 0 },
};

/* The verbs that this build was made without (`make user WITHOUT=…`). */
static const char *const left_out[] = {
#ifdef KBARMAN_WITHOUT_push
	"push",
#endif
#ifdef KBARMAN_WITHOUT_query
	"query",
#endif
#ifdef KBARMAN_WITHOUT_stat
	"stat",
#endif
	NULL,
};

static void list_verbs(FILE *stream)
{
	fprintf(stream, "usage: kbarman VERB [ARGUMENTS]\n\n");
	for (const struct cli_verb *verb = verbs; verb->name; verb++)
		fprintf(stream, "  %-10s %s\n", verb->name, verb->summary);
	fprintf(stream, "\n'kbarman help VERB' prints the options of VERB.\n"
		"Every verb takes -V (version), -v (more messages) and -q (fewer messages).\n");
}

static int no_such_verb(const char *word)
{
	struct cli_nearest nearest = { .word = word };

	for (size_t i = 0; left_out[i]; i++)
		if (!strcmp(word, left_out[i]))
			return cli_fail("this kbarman was built without '%s': use another build", word);
	for (const struct cli_verb *verb = verbs; verb->name; verb++)
		cli_nearest_try(&nearest, verb->name);
	if (nearest.name)
		return cli_fail("no verb '%s': did you mean '%s'?", word, nearest.name);
	return cli_fail("no verb '%s': try 'kbarman --help'", word);
}

static int run(int argc, char **argv)
{
	for (const struct cli_verb *verb = verbs; verb->name; verb++) {
		if (strcmp(argv[0], verb->name) == 0) {
			cli_verb_name = verb->name;
			optind = 0;
			return verb->run(argc, argv);
		}
	}
	return no_such_verb(argv[0]);
}

/* Prints the help of the verb @word, or without @word that of the tool. */
static int help(char *word)
{
	char ask[] = "--help", *argv[] = { word, ask, NULL };

	/* The help of `help` is the list of verbs. */
	if (word && strcmp(word, "help"))
		return run(2, argv);
	list_verbs(stdout);
	return fflush(stdout) ? CLI_IMPOSSIBLE : CLI_OK;
}

int cmd_help(int argc, char **argv)
{
	static const struct cli_usage usage = { 0 };	/* the help of `help` is another one */

	while (cli_getopt(argc, argv, &usage) == '?')
		return CLI_IMPOSSIBLE;
	if (optind + 1 < argc)
		return cli_fail("one verb at a time");
	return help(argv[optind]);
}

int main(int argc, char **argv)
{
	cli_verbs = verbs;
	if (argc < 2) {
		list_verbs(stderr);
		return CLI_IMPOSSIBLE;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))
		return help(argv[2]);
	if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-V"))
		return cli_version();
	return run(argc - 1, argv + 1);
}
