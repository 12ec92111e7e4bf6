// SPDX-License-Identifier: MIT
/* The tool's messages: only this file prints complaints. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/text/utf8.h"
#include "cli/base/cli.h"

/* Names come from files and from other programs, and must not control the terminal. */
static void say(const char *format, va_list args)
{
	char *text;

	if (vasprintf(&text, format, args) < 0)
		return;
	text[kb_utf8_shown(text, text, strlen(text))] = '\0';
	fflush(stdout);
	cli_progress_clear();
	fprintf(stderr, "kbarman%s%s: %s\n", cli_verb_name ? " " : "",
		cli_verb_name ? cli_verb_name : "", text);
	free(text);
}

void cli_warn(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say(format, args);
	va_end(args);
}

void cli_note(const char *format, ...)
{
	va_list args;

	if (cli_verbosity() < 0)
		return;
	va_start(args, format);
	say(format, args);
	va_end(args);
}

void cli_wrote(const char *path, uint64_t records)
{
	char contents[32] = "", size[32] = "";
	struct stat st;

	if (strcmp(path, "-") == 0 || stat(path, &st) || !(S_ISREG(st.st_mode) || S_ISDIR(st.st_mode)))
		return;
	if (records)
		snprintf(contents, sizeof(contents), "%" PRIu64 " records", records);
	if (S_ISREG(st.st_mode))
		snprintf(size, sizeof(size), "%s%" PRIu64 " bytes", records ? ", " : "",
			 (uint64_t)st.st_size);
	cli_note("wrote %s: %s%s", path, contents, size);
}

int (cli_fail)(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say(format, args);
	va_end(args);
	return CLI_IMPOSSIBLE;
}

int cli_fail_error(const struct kb_error *err)
{
	return cli_fail("%s", err->text[0] ? kb_error_text(err) : strerror(-err->code));
}
