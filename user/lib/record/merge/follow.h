/* SPDX-License-Identifier: MIT */
/*
 * record/merge/: many rings or captures as one stream in the order of time: the rings of a
 * recording (rings.c), finished files (captures.h), and a session of another program (follow.h).
 *
 * The records of a running session in overwrite mode, as they come: those of all CPUs, in order of
 * time. The session is not disturbed, and may belong to another process. What is overwritten before
 * it is read is counted, and told with the next record of its CPU.
 */
#ifndef KB_LIB_RECORD_MERGE_FOLLOW_H
#define KB_LIB_RECORD_MERGE_FOLLOW_H

#include <kbarman/device.h>

struct kb_follow;

/* Begin with what is recorded from now on. @device must live as long. */
int kb_follow_create(struct kb_follow **out, struct kb_device *device, struct kb_error *err);
void kb_follow_destroy(struct kb_follow *follow);	/* may be NULL */

/*
 * Look for what is new, also for CPUs that are. *@now: ticks; every record from before @now minus
 * what a CPU may need to publish one is there afterwards.
 */
int kb_follow_look(struct kb_follow *follow, uint64_t *now, struct kb_error *err);

struct kb_followed {
	const void *block;		/* with its length word; holds until the next call */
	size_t bytes;
	uint64_t timestamp;
	uint32_t cpu;
	bool behind_gap;		/* records are missing in front of it: */
	uint64_t gap_from;		/* ... since that time, of a record or of a look */
};

/*
 * The next record that is not behind @horizon. Returns 1, 0: there is none so far; or -ENOMEM.
 */
int kb_follow_next(struct kb_follow *follow, uint64_t horizon, struct kb_followed *record);

/* The map of the first CPU: all share its header. */
const struct kb_mapped *kb_follow_header(const struct kb_follow *follow);

struct kb_follow_stats {
	uint64_t lost_bytes, lost_times;
	unsigned int fill;		/* in percent: the most of a ring that was new in the last look */
};

void kb_follow_stats(const struct kb_follow *follow, struct kb_follow_stats *stats);

/* Note where all rings are; then how much of a ring is written since, in percent, the most of all. */
void kb_follow_note(struct kb_follow *follow);
unsigned int kb_follow_since_note(const struct kb_follow *follow);

#endif
