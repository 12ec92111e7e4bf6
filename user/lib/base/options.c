// SPDX-License-Identifier: MIT
/* See options.h. */
#include <errno.h>
#include <string.h>

#include "base/options.h"

int kb_options_take(void *known, size_t size, const void *given, struct kb_error *err)
{
	const char *bytes = given;
	size_t theirs, i;

	memset(known, 0, size);
	memcpy(known, &size, sizeof(size));
	if (!given)
		return 0;
	memcpy(&theirs, given, sizeof(theirs));
	if (theirs < sizeof(theirs) || theirs > 4096)
		return kb_error_set(err, -EINVAL, KB_NO_OFFSET, "options with a size of %zu: set "
				    ".size to the size of the struct", theirs);
	for (i = size; i < theirs; i++)
		if (bytes[i])
			return kb_error_set(err, -EINVAL, KB_NO_OFFSET, "options of a later "
					    "version than this library's");
	memcpy(known, given, theirs < size ? theirs : size);
	memcpy(known, &size, sizeof(size));
	return 0;
}
