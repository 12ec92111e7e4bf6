// SPDX-License-Identifier: MIT
/* See recorded.h. Only this file defines what "recorded" means. */
#include <stdlib.h>
#include <string.h>

#include "analysis/facts/recorded.h"

void kb_recorded_init(struct kb_recorded *recorded, const struct kb_barman *barman,
		      const struct kb_losses *losses)
{
	const char *part = kb_barman_fact(barman, "part");
	const char *begin = kb_barman_fact(barman, "begin");

	*recorded = (struct kb_recorded){
		.barman = barman,
		/*
		 * The kernel module sets the base of the time and this fact when all of its sources
		 * are there. An early one set them before, and said in another fact when the sources
		 * were there. Only the first part of a session begins then.
		 */
		.from_start = kb_barman_fact(barman, "raw_base") && !losses->overwritten &&
			      (!part || !strncmp(part, "1,", 2)),
		.begin = begin ? kb_barman_ns(barman, strtoull(begin, NULL, 10)) : 0,
		.first = INT64_MAX,
		.last = INT64_MIN,
	};
}

int64_t kb_recorded_first(const struct kb_recorded *recorded)
{
	int64_t first = recorded->first > recorded->last ? INT64_MAX : recorded->first;

	if (first == INT64_MAX && !recorded->from_start)
		return 0;
	return recorded->from_start && first > recorded->begin ? recorded->begin : first;
}

int64_t kb_recorded_last(const struct kb_recorded *recorded)
{
	uint64_t ticks = kb_barman_header(recorded->barman)->last_timestamp;
	int64_t last = recorded->first > recorded->last ? 0 : recorded->last, ns;
	const struct kb_error *damage;

	/* ~0 is not a time, and the header of a cut-off file does not have its last time */
	if (ticks == UINT64_MAX || kb_barman_damage(recorded->barman, &damage))
		return last;
	ns = kb_barman_ns(recorded->barman, ticks);
	return ns > last ? ns : last;
}

uint64_t kb_recorded_duration(const struct kb_recorded *recorded)
{
	return (uint64_t)kb_recorded_last(recorded) - (uint64_t)kb_recorded_first(recorded);
}
