// SPDX-License-Identifier: MIT
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/say.h"
#include "base/text/utf8.h"

void agent_say(enum agent_level level, const char *format, ...)
{
	char *text;
	va_list args;
	int length;

	va_start(args, format);
	length = vasprintf(&text, format, args);
	va_end(args);
	if (length < 0)
		return;
	text[kb_utf8_shown(text, text, strlen(text))] = '\0';
	if (getenv("JOURNAL_STREAM"))
		fprintf(stderr, "<%d>%s\n", level, text);
	else
		fprintf(stderr, "kbarmand: %s\n", text);
	free(text);
}
