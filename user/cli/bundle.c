// SPDX-License-Identifier: MIT
/*
 * kbarman bundle: runs on the recorded machine and saves symbols beside a capture, so that
 * another machine finds the same names.
 */
#include <stdlib.h>
#include <string.h>

#include <kbarman/trace.h>

#include "cli/base/cli.h"
#include "cli/base/decoder.h"
#include "cli/base/sandbox.h"
#include "cli/base/symbols.h"
#include "sym/symbolizer/bundle.h"

static const struct cli_option options[] = {
	SYMBOLS_OPTIONS,
	{ 0 },
};

static const struct cli_usage usage = {
	.head =
	"usage: kbarman bundle [OPTIONS] [FILE]\n"
	"\n"
	"Save symbols for the capture FILE (default kbarman.cap): those of all programs and\n"
	"libraries that its samples hit. They are saved as FILE.symbols. Other machines take the\n"
	"names from there.\n"
	"\n",
	.options = options,
	.column = 25,
	.tail =
	"\n"
	"Exit status: 0 saved; 1 the capture is damaged, symbols of its undamaged part are\n"
	"saved; 2 not saved.\n",
};

/* Drops complaints about kernel symbols: `record` saves them, this verb does not. */
static void complain(void *context, const char *sentence)
{
	(void)context;
	if (strncmp(sentence, "kernel ", 7) != 0)
		cli_warn("%s", sentence);
}

int cmd_bundle(int argc, char **argv)
{
	struct kb_symbol_options symbols = { .size = sizeof(symbols) };
	char *written, *temporary;
	const char *path;
	struct kb_error err = { 0 };
	int option, ret;

	while ((option = cli_getopt(argc, argv, &usage)) != -1)
		if (!symbols_take(&symbols, option, optarg))
			return cli_usage(option == 'h', &usage);
	symbols_end(&symbols);
	path = cli_input(NULL, argc, argv, CLI_CAPTURE);
	if (!path)
		return CLI_IMPOSSIBLE;
	if (strcmp(path, "-") == 0)
		return cli_fail("symbols are saved beside the capture, and standard input has no "
				"name: give a FILE");
	cli_decoder_start();
	/* kept until the exit */
	if (asprintf(&temporary, "%s" KB_BUNDLE_TEMPORARY, path) < 0 || !cli_output_remember(temporary))
		return cli_fail("out of memory");
	cli_progress("saving symbols", false);
	cli_sandbox(&(struct cli_sandbox) { .inputs = &path, .nr_inputs = 1, .output = path,
					    .processes = true, .decoder = true });
	ret = kb_capture_save_symbols(path, &symbols, complain, NULL, &err);
	cli_progress_end();
	cli_decoder_report();
	if (ret < 0)
		return cli_fail_error(&err);
	if (ret)
		cli_warn("%s", kb_error_text(&err));
	if (asprintf(&written, "%s" KB_BUNDLE_SUFFIX, path) >= 0) {
		cli_wrote(written, 0);
		free(written);
	}
	return ret ? CLI_DAMAGED : CLI_OK;
}
