// SPDX-License-Identifier: MIT
/*
 * kbarman check: checks whether a file is valid in its format. Reads the whole file and prints a
 * sentence with the offset for each error.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/utf8.h"
#include "cli/base/cli.h"
#include "cli/base/sandbox.h"
#include "cli/dump/formats.h"

static const struct cli_usage usage = {
	.head =
	"usage: kbarman check [FILE…]\n"
	"\n"
	"Check whether each FILE (default kbarman.cap; '-' is standard input) is valid. Its\n"
	"format is recognised by its content. Each error is printed with its byte offset.\n"
	"\n",
	.column = 15,
	.tail =
	"\n"
	"Exit status: 0 all files are valid; 1 a file is damaged; 2 a file can't be read.\n",
};

/* Names of files, and names in files, must not control the terminal. */
static void say(const char *sentence)
{
	char *shown = strdup(sentence);

	if (!shown)
		return;
	shown[kb_utf8_shown(shown, shown, strlen(shown))] = '\0';
	cli_progress_clear();
	puts(shown);
	free(shown);
}

static void say_valid(const char *name, const char *format)
{
	char *sentence;

	if (asprintf(&sentence, "%s: a valid %s", strcmp(name, "-") ? name : "standard input",
		     format) < 0)
		return;
	say(sentence);
	free(sentence);
}

/*
 * Is one of the files after argv[i] a pipe? Looking at the first bytes of a pipe takes a process,
 * which the sandbox forbids.
 */
static bool pipe_follows(int argc, char **argv, int i)
{
	while (++i < argc)
		if (cli_is_pipe(argv[i]))
			return true;
	return false;
}

/* @name NULL: there is no file, and the message is printed. */
static int check(const char *name, bool is_last_pipe)
{
	const char *path = name;
	const struct cli_format *format;
	int status;

	if (!name)
		return CLI_IMPOSSIBLE;
	cli_progress(NULL, false);
	format = cli_format_of(&path);
	if (!format)
		return CLI_IMPOSSIBLE;
	if (is_last_pipe)
		cli_sandbox(&(struct cli_sandbox) { .inputs = &path, .nr_inputs = 1,
						      .threads = true });
	status = format->check(path, say);
	cli_progress_end();
	if (status == CLI_OK)
		say_valid(name, format->name);
	return status;
}

int cmd_check(int argc, char **argv)
{
	int option, worst = CLI_OK;

	while ((option = cli_getopt(argc, argv, &usage)) != -1)
		return cli_usage(option == 'h', &usage);
	if (optind == argc)
		worst = check(cli_input(NULL, argc, argv, CLI_CAPTURE), true);
	for (; optind < argc; optind++) {
		int status = check(argv[optind], !pipe_follows(argc, argv, optind));

		if (status > worst)
			worst = status;
	}
	if (fflush(stdout))
		return cli_fail("can't write standard output");
	return worst;
}
