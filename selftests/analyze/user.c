// SPDX-License-Identifier: MIT
/*
 * What each analyzer of user space must find: `make analyze` fails where one of them has
 * nothing to say of this file. Never built.
 */
#include <stdlib.h>
#include <string.h>

int twice(const char *text)
{
	char *copy = strdup(text);
	char last[4];

	if (!copy)
		return -1;
	memcpy(last, text, sizeof(last));
	last[4] = '\0';
	free(copy);
	return copy[0] + last[0];
}
