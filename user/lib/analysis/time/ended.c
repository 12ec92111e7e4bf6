// SPDX-License-Identifier: MIT
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "analysis/facts/capture_names.h"
#include "analysis/time/ended.h"
#include "base/array.h"

uint64_t kb_ended_ns(const struct kb_barman *barman, const struct kb_event *event)
{
	uint64_t begin = event->custom_counter.begin;

	if (!kb_ended_is_timed(event) || begin > event->timestamp)
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

const char *kb_fault_kind_name(enum kb_fault_kind kind)
{
	static const char *const names[] = {
		[KB_FAULT_KIND_MINOR] = "minor", [KB_FAULT_KIND_MAJOR] = "major", [KB_FAULT_KIND_FAILED] = "failed",
	};

	return names[kind];
}

const char *kb_block_flags_text(uint16_t flags, char text[KB_BLOCK_FLAGS_TEXT])
{
	static const struct {
		uint16_t flag;
		const char *word;
	} words[] = {
		{ KB_BLOCK_SYNC, "sync" }, { KB_BLOCK_META, "meta" }, { KB_BLOCK_AHEAD, "ahead" },
		{ KB_BLOCK_FUA, "fua" }, { KB_BLOCK_PREFLUSH, "preflush" },
	};
	size_t used = 0;

	*text = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (flags & words[i].flag)
			used += (size_t)snprintf(text + used, KB_BLOCK_FLAGS_TEXT - used, "%s%s",
						 used ? "," : "", words[i].word);
	return text;
}

const char *kb_disk_name(const struct kb_names *names, uint32_t device, char text[KB_DISK_TEXT])
{
	const char *name = device ? kb_names_disk(names, device) : NULL;

	if (!device || name)
		return name;
	snprintf(text, KB_DISK_TEXT, "%" PRIu32 ":%" PRIu32, device >> 20, device & 0xfffff);
	return text;
}
