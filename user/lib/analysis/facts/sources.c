// SPDX-License-Identifier: MIT
#include <string.h>

#include "analysis/facts/sources.h"

bool kb_has_source(const struct kb_barman *barman, const char *name)
{
	const char *sources = kb_barman_fact(barman, "sources");
	size_t length = strlen(name);

	for (; sources && *sources; sources += strcspn(sources, ","), sources += *sources == ',')
		if (strcspn(sources, ",") == length && memcmp(sources, name, length) == 0)
			return true;
	return false;
}

bool kb_has_objects(const struct kb_barman *barman)
{
	const char *objects = kb_barman_fact(barman, "objects");

	return objects && *objects == '1';
}
