// SPDX-License-Identifier: MIT
/*
 * See environment.h. Source: "OpenTelemetry Protocol Exporter" of OpenTelemetry's specification. An
 * empty variable is one that is not set. No message has a value, which may be a password.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/base/cli.h"
#include "push/environment.h"

static const char *const beginnings[] = { "OTEL_EXPORTER_OTLP_PROFILES_", "OTEL_EXPORTER_OTLP_" };

const char *push_environment(const char *name, const char **variable)
{
	static char word[64];

	for (size_t i = 0; i < sizeof(beginnings) / sizeof(beginnings[0]); i++) {
		const char *value;

		snprintf(word, sizeof(word), "%s%s", beginnings[i], name);
		value = getenv(word);
		if (value && *value) {
			if (variable)
				*variable = word;
			return value;
		}
	}
	return NULL;
}

char *push_environment_url(const char *path, bool *exact)
{
	const char *variable, *value = push_environment("ENDPOINT", &variable);
	size_t end;
	char *url;

	if (!value)
		return NULL;
	*exact = !strncmp(variable, beginnings[0], strlen(beginnings[0]));
	if (*exact)
		return strdup(value);
	end = strcspn(value, "?#");
	for (url = NULL; end && value[end - 1] == '/'; end--)
		;
	return asprintf(&url, "%.*s%s%s", (int)end, value, path, value + strcspn(value, "?#")) < 0 ? NULL : url;
}

static int digit(char c)
{
	const char *digits = "0123456789abcdef0123456789ABCDEF", *at = c ? strchr(digits, c) : NULL;

	return at ? (int)((at - digits) % 16) : -1;
}

char *push_unescape(char *text)
{
	char *from, *to, *end;

	text += strspn(text, " \t");
	end = text + strlen(text);
	while (end > text && strchr(" \t\r\n", end[-1]))
		*--end = '\0';
	for (from = to = text; *from; from++) {
		if (*from == '%' && digit(from[1]) >= 0 && digit(from[2]) >= 0) {
			*to++ = (char)(digit(from[1]) << 4 | digit(from[2]));
			from += 2;
		} else {
			*to++ = *from;
		}
	}
	*to = '\0';
	return text;
}

int push_environment_headers(int (*take)(void *context, const char *header), void *context)
{
	const char *variable = NULL, *value = push_environment("HEADERS", &variable);
	char *list = value ? strdup(value) : NULL, *rest = list, *pair;
	int status = value && !list ? cli_fail("out of memory") : 0;

	while (!status && (pair = strsep(&rest, ","))) {
		char *equals = strchr(pair, '='), *header;

		if (!pair[strspn(pair, " \t")])
			continue;
		if (!equals || equals == pair) {
			status = cli_fail("%s: give NAME=VALUE,NAME=VALUE", variable);
			break;
		}
		*equals = '\0';
		if (asprintf(&header, "%s: %s", push_unescape(pair), push_unescape(equals + 1)) < 0)
			status = cli_fail("out of memory");
		else
			status = take(context, header);
	}
	free(list);
	return status;
}
