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
	int length;

	if (!copy)
		return -1;
	length = (int)strlen(copy);
	free(copy);
	return length + copy[0];
}
