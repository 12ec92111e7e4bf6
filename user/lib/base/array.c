// SPDX-License-Identifier: MIT
/* Arrays that grow: the number of copies stays below the number of rows. */
#include <stdlib.h>

#include "base/array.h"

#define FIRST_ROWS	16
#define FIRST_BYTES	1024	/* small rows begin with as many as fit in there */

void *kb_array_grow(void *rows, size_t *max, size_t wanted, size_t size, size_t limit)
{
	size_t room = *max ? *max : FIRST_ROWS;

	if (wanted > limit)
		return NULL;
	while (!*max && size && room * 2 * size <= FIRST_BYTES)
		room *= 2;
	if (room > limit)
		room = limit;
	while (room < wanted)
		room = room > limit / 2 ? limit : room * 2;
	if (size && room > PTRDIFF_MAX / size)
		return NULL;
	rows = realloc(rows, room * size);
	if (rows)
		*max = room;
	return rows;
}
