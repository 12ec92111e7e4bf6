// SPDX-License-Identifier: MIT
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/size.h"

bool kb_size_parse(const char *text, unsigned long long *value)
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
