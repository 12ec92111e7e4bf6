// SPDX-License-Identifier: MIT
/*
 * kbarman dump: prints the content of a file without interpreting it. formats.c has the table of
 * formats; dump_FORMAT.c prints the lines of a format.
 */
#include "cli/base/cli.h"
#include "cli/base/fact_lines.h"
#include "cli/base/sandbox.h"
#include "cli/dump/formats.h"

static const struct cli_option options[] = {
	{ 'j', "json", NULL, "print JSON, one object per line" },
	{ 0 },
};

static const struct cli_usage usage = {
	.head =
	"usage: kbarman dump [--json] [FILE]\n"
	"\n"
	"Print everything that FILE (default kbarman.cap; '-' is standard input) contains, one\n"
	"line for each row and record. The format of FILE is recognised by its content.\n"
	"\n",
	.options = options,
	.column = 15,
	.tail =
	"\n"
	"Exit status: 0 FILE was decoded; 1 FILE is damaged, its undamaged part was decoded;\n"
	"2 FILE can't be decoded.\n",
};

int cmd_dump(int argc, char **argv)
{
	const struct cli_format *format;
	struct kb_json json;
	bool people = true;
	const char *path;
	int option, status;

	while ((option = cli_getopt(argc, argv, &usage)) != -1) {
		switch (option) {
		case 'j':
			people = false;
			break;
		default:
			return cli_usage(option == 'h', &usage);
		}
	}
	path = cli_input(NULL, argc, argv, CLI_CAPTURE);
	if (!path)
		return CLI_IMPOSSIBLE;
	cli_progress(NULL, true);
	format = cli_format_of(&path);
	if (!format)
		return CLI_IMPOSSIBLE;
	cli_sandbox_reading(path);
	if (lines_open(&json, people))
		return CLI_IMPOSSIBLE;
	status = format->dump(path, &json);
	cli_progress_end();
	return lines_close(&json, status);
}
