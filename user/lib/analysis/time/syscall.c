// SPDX-License-Identifier: MIT
#include <string.h>

#include "analysis/time/syscall.h"
#include "base/array.h"

uint64_t kb_syscall_ns(const struct kb_barman *barman, const struct kb_event *event)
{
	uint64_t begin = event->custom_counter.begin;

	if (!begin || begin > event->timestamp)
		return 0;
	return (uint64_t)kb_barman_ns(barman, event->timestamp) - (uint64_t)kb_barman_ns(barman, begin);
}

bool kb_syscall_is_own(const struct kb_names *names, const struct kb_event *event)
{
	static const char *const makers[] = { "clone", "clone3", "fork", "vfork" };
	const char *name;

	if (event->custom_counter.begin || event->custom_counter.result)
		return true;
	name = kb_names_call(names, event);
	for (size_t i = 0; name && i < ARRAY_SIZE(makers); i++)
		if (!strcmp(name, makers[i]))
			return false;
	return true;
}
