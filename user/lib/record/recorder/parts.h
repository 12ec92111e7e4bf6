/* SPDX-License-Identifier: MIT */
/* What the parts of a session have so far: see kbarman/recorder.h. */
#ifndef KB_LIB_RECORD_RECORDER_PARTS_H
#define KB_LIB_RECORD_RECORDER_PARTS_H

#include <kbarman/recorder.h>

/*
 * Keys of facts: how much the parts before a part had told of when it was begun, and how much they
 * and this one have when it has ended. CPU and reason of lost records, or the name of a miss, follow.
 */
#define KB_PART_BEFORE	"part_before."
#define KB_PART_LOST	"part_lost."

/* What earlier parts have of a CPU. */
struct kb_parts_cpu {
	uint64_t lost[KBARMAN_LOST_REASONS];	/* records that they have told of */
	/* Of the last record, which may still be in the ring; NULL: none of them has one. */
	uint8_t *record;
	size_t length;			/* bytes, without the length word */
	uint64_t timestamp;
};

struct kb_parts {
	struct kb_parts_cpu *cpus;	/* nr_cpus */
	unsigned int nr_cpus;
	uint64_t next;			/* number of the next part */
	uint64_t session, raw_base;	/* which session */
	uint64_t missed[KBARMAN_MISS_REASONS];	/* as `lost`, of all CPUs */
};

#endif
