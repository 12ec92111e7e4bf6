// SPDX-License-Identifier: MIT
/*
 * kbarman merge: merges the captures of a session's CPUs into one, in time order; or those of several
 * machines into a trace (merge_machines.h).
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <kbarman/trace.h>

#include "cli/base/cli.h"
#include "cli/base/sandbox.h"
#include "cli/base/sides.h"
#include "cli/base/symbols.h"
#include "cli/merge_machines.h"
#include "cli/merged.h"
#include "record/merge/captures.h"

enum { OPTION_MACHINES = 256, OPTION_TO };

static const struct cli_option options[] = {
	{ 'o', "output", "OUT", "write to OUT, a file (default '-', which is standard output)" },
	{ OPTION_MACHINES, "machines", NULL,
	  "the captures are of different machines: write a trace with all\n"
	  "of them on one clock, and say how exact that is" },
	{ OPTION_TO, "to", "FORMAT",
	  "write this format with --machines: perfetto or chrome (default by\n"
	  "the name of OUT: chrome for .json)" },
	{ 'j', "json", NULL, "print JSON: how exact the clocks are" },
	SYMBOLS_OPTIONS,
	{ 0 },
};

static const struct cli_usage usage = {
	.head =
	"usage: kbarman merge [-o OUT] FILE…\n"
	"       kbarman merge --machines [--to FORMAT] [-j] [-o OUT] FILE FILE…\n"
	"\n"
	"Merge Barman captures of one session, such as the saved maps of its CPUs, into one\n"
	"linear capture in time order. A row that is in several tables is written once.\n"
	"With --machines, captures of several machines become a trace for a viewer.\n"
	"\n",
	.options = options,
	.column = 21,
	.tail =
	"\n"
	"Exit status: 0 merged; 1 an input is damaged, its undamaged part was merged; 2 nothing\n"
	"was written.\n",
};

/* @captures become the readers of @traces. */
static bool open_inputs(struct kb_trace **traces, struct kb_barman **captures, unsigned int count,
			char **paths)
{
	struct kb_merge_conflict conflict;

	for (unsigned int i = 0; i < count; i++) {
		struct kb_error err;

		if (kb_trace_open(&traces[i], paths[i], NULL, &err)) {
			cli_fail_error(&err);
			return false;
		}
		captures[i] = kb_trace_barman(traces[i]);
		kb_barman_set_window(captures[i], MERGED_WINDOWS_BYTES / count);
	}
	if (kb_captures_agree(captures, count, &conflict))
		return true;
	cli_warn("%s and %s can't be merged: %s", paths[conflict.left], paths[conflict.right],
		 conflict.why);
	return false;
}

static void close_inputs(struct kb_trace **traces, unsigned int count)
{
	for (unsigned int i = 0; i < count; i++)
		kb_trace_close(traces[i]);
}

/* If the output is one of the inputs, the files beside it still belong to it. */
static bool is_input(const char *output, char **paths, unsigned int count)
{
	for (unsigned int i = 0; i < count; i++)
		if (strcmp(paths[i], output) == 0)
			return true;
	return strcmp(output, "-") == 0;
}

static int merge(char **paths, unsigned int count, const char *output)
{
	struct kb_barman **captures = calloc(count, sizeof(struct kb_barman *));
	struct kb_trace **traces = calloc(count, sizeof(struct kb_trace *));
	int status = CLI_IMPOSSIBLE;
	uint64_t records = 0;

	if (!captures || !traces)
		cli_fail("out of memory");
	else if (open_inputs(traces, captures, count, paths))
		status = merged_write(captures, count, NULL, output, &records);
	cli_progress_end();
	if (!status) {
		if (!is_input(output, paths, count))
			sides_remove(output);
		status = merged_complain(captures, count);
		cli_wrote(output, records);
	}
	if (traces)
		close_inputs(traces, count);
	free(traces);
	free(captures);
	return status;
}

/* What the options say. */
struct choice {
	bool machines;
	struct merge_machines how;
};

/* Takes one option. False: it is none that this verb has. */
static bool take_option(struct choice *choice, int option)
{
	switch (option) {
	case 'o':
		choice->how.output = optarg;
		return true;
	case OPTION_MACHINES:
		choice->machines = true;
		return true;
	case OPTION_TO:
		choice->how.to = optarg;
		return true;
	case 'j':
		choice->how.json = true;
		return true;
	}
	return symbols_take(&choice->how.symbols, option, optarg);
}

static int merge_cpus(char **paths, unsigned int count, const char *output)
{
	cli_progress("merging", strcmp(output, "-") == 0);
	cli_sandbox(&(struct cli_sandbox) { .inputs = (const char *const *)paths,
					    .nr_inputs = (int)count, .output = output });
	return merge(paths, count, output);
}

int cmd_merge(int argc, char **argv)
{
	struct choice choice = { .how = { .output = "-", .symbols.size = sizeof(choice.how.symbols) } };
	const char *output;
	int option;

	while ((option = cli_getopt(argc, argv, &usage)) != -1)
		if (!take_option(&choice, option))
			return cli_usage(option == 'h', &usage);
	symbols_end(&choice.how.symbols);
	output = choice.how.output;
	if (optind == argc) {
		cli_warn("give the FILEs to merge");
		return cli_usage(false, &usage);
	}
	if (strcmp(output, "-") == 0 && isatty(STDOUT_FILENO))
		return cli_fail("won't write a %s to a terminal: give -o FILE",
				choice.machines ? "trace" : "capture");
	choice.how.paths = (const char *const *)argv + optind;
	choice.how.count = (unsigned int)(argc - optind);
	if (choice.machines)
		return merge_machines(&choice.how);
	if (choice.how.to || choice.how.json)
		return cli_fail("--to and -j are for --machines");
	return merge_cpus(argv + optind, choice.how.count, output);
}
