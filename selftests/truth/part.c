// SPDX-License-Identifier: MIT
/*
 * One PART as a program of its own, or as a library: `part-NAME ROUNDS` calls
 * PART_middle() as often.
 */
#include <stdlib.h>

#include "part.h"

#ifndef LIBRARY
int main(int argc, char **argv)
{
	long rounds = argc > 1 ? strtol(argv[1], NULL, 10) : 1;

	while (rounds--)
		JOIN(PART, middle)();
	return 0;
}
#endif
