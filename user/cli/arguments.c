// SPDX-License-Identifier: MIT
/* The words behind a verb that are no options, and the numbers in its options. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli.h"

const char *cli_input(const char *given, int argc, char **argv, const char *otherwise)
{
	if (!given && optind < argc)
		given = argv[optind++];
	if (optind < argc) {
		cli_fail("one FILE at a time: leave out '%s'", argv[optind]);
		return NULL;
	}
	if (given)
		return given;
	if (access(otherwise, F_OK) && errno == ENOENT) {
		cli_fail("there is no %s here: give the name of a capture", otherwise);
		return NULL;
	}
	return otherwise;
}

bool cli_parse_size(const char *text, unsigned long long *value)
{
	unsigned int shift = 0;
	char *end;

	if (text[0] < '0' || text[0] > '9')
		return false;
	errno = 0;
	*value = strtoull(text, &end, 0);
	switch (*end) {
	case 'K':
	case 'k':
		shift = 10;
		break;
	case 'M':
	case 'm':
		shift = 20;
		break;
	case 'G':
	case 'g':
		shift = 30;
		break;
	}
	if (shift)
		end++;
	if (errno || *end || *value > ULLONG_MAX >> shift)
		return false;
	*value <<= shift;
	return true;
}
