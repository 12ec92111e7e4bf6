/* SPDX-License-Identifier: MIT */
/*
 * Leaves out the call chains of short waits. Whether a wait is short is known when its task runs
 * again, or when it has waited for long enough. Until then the switch waits here, and with it all
 * later records, so that their order stays.
 *
 *	kb_short_waits_add()		a record, in the order of time
 *	while kb_short_waits_first()	a record whose chain stays or was left out
 *		kb_short_waits_remove_first()
 */
#ifndef KB_LIB_RECORD_RECORDER_SHORT_WAITS_H
#define KB_LIB_RECORD_RECORDER_SHORT_WAITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <kbarman/merge.h>

struct kb_short_waits;
struct kb_waiting;

/*
 * Waits of less than @min ticks are short. Records of CPUs from @nr_cpus on are not looked at. At
 * most @max_bytes of records wait: the first of more records keeps its chain. Returns 0 or -ENOMEM.
 */
int kb_short_waits_create(struct kb_short_waits **out, uint64_t min, unsigned int nr_cpus,
			  size_t max_bytes);
void kb_short_waits_destroy(struct kb_short_waits *waits);

/* Take a copy of @record. Returns 0 or -ENOMEM. */
int kb_short_waits_add(struct kb_short_waits *waits, const struct kb_raw_record *record);

/*
 * The first record, unless it has to wait: all records before @now (ticks) have come. False: there
 * is none. Its source is 0. It is valid until the next change.
 */
bool kb_short_waits_first(struct kb_short_waits *waits, uint64_t now, struct kb_raw_record *record);
void kb_short_waits_remove_first(struct kb_short_waits *waits);

/* All that wait, in their order. */
const struct kb_waiting *kb_short_waits_records(const struct kb_short_waits *waits);

/* How many chains were left out. */
uint64_t kb_short_waits_count(const struct kb_short_waits *waits);

#endif
