// SPDX-License-Identifier: MIT
/*
 * kbarman dump: what a file says, fact by fact, nothing interpreted. The formats
 * are in formats.c; a format's own lines are in dump_FORMAT.c.
 */
#include <getopt.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "formats.h"

static const char usage[] =
	"usage: kbarman dump [--json] FILE\n"
	"\n"
	"Print every fact of FILE (`-': standard input), whose format is recognised by its\n"
	"content, a line each.\n"
	"\n"
	"  -j, --json   one JSON object a line\n"
	"  -h, --help   this text\n"
	"\n"
	"Exit status: 0 decoded whole; 1 decoded with damage, which is told on standard\n"
	"error; 2 can't be decoded.\n";

int cmd_dump(int argc, char **argv)
{
	static const struct option options[] = {
		{ "json", no_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	const struct cli_format *format;
	struct kb_json json = { .people = true };
	const char *path;
	int option, status, ret;

	while ((option = getopt_long(argc, argv, "jh", options, NULL)) != -1) {
		switch (option) {
		case 'j':
			json.people = false;
			break;
		default:
			return cli_usage(option == 'h', usage);
		}
	}
	if (optind != argc - 1) {
		cli_warn(optind == argc ? "which file?" : "one file at a time");
		return cli_usage(false, usage);
	}
	path = argv[optind];
	format = cli_format_of(&path);
	if (!format)
		return CLI_IMPOSSIBLE;
	ret = kb_out_fd(&json.out, STDOUT_FILENO);
	if (ret)
		return cli_fail("out of memory");
	status = format->dump(path, &json);
	ret = kb_out_flush(json.out);
	kb_out_destroy(json.out);
	if (ret)
		return cli_fail("can't write standard output: %s", strerror(-ret));
	return status;
}
