/* SPDX-License-Identifier: MIT */
/*
 * cli/top/: kbarman top: its refreshes, who waited for a CPU, and what tasks wait for.
 *
 * What tasks wait for now, and what they waited for during a refresh. Tasks of the kernel's own do not say it.
 */
#ifndef KB_CLI_TOP_OBJECTS_H
#define KB_CLI_TOP_OBJECTS_H

#include "analysis/facts/name_ids.h"
#include "analysis/latency/waited.h"

/* Tasks of one name, and one object. */
struct top_object {
	uint64_t key[KB_WAITED_KEY];
	struct kb_waits_row row;	/* what it is, without times and waker */
	uint32_t id;			/* the number of a descriptor or a device */
	uint32_t tid;			/* who waited longest */
	uint64_t waits, sum_ns;		/* of this refresh only */
	uint64_t longest_ns;		/* since it began, as now_ns */
	uint32_t nr_now;		/* tasks that still wait, */
	uint64_t now_ns;		/* the longest one of them so far */
	bool held_up;			/* by a disk, a lock that somebody holds, or where no signal helps */
	bool moves;			/* a wait began or ended */
};

struct top_objects {
	struct kb_table waiting;	/* by task; kept from one refresh to the next */
	unsigned int patience;		/* the same: how often the time to find names was too short */
	struct kb_table rows;		/* struct top_object */
	struct kb_name_ids comms;
	const struct kb_names *names;
	const struct kb_header *header;
	struct kb_proc_object *found;
	uint64_t since;			/* ticks: where the refresh begins, */
	int64_t from_ns;		/* ... in ns */
	bool *seen;			/* CPUs, by number */
	bool has_gap;			/* records may be missing between this refresh and the last one */
};

/* All zero but for this. */
void top_objects_init(struct top_objects *objects);
void top_objects_release(struct top_objects *objects);

/* Begin a refresh with the first record of @trace; from @since, in ticks and in ns. Returns 0 or -ENOMEM. */
int top_objects_begin(struct top_objects *objects, struct kb_trace *trace, uint64_t since, int64_t from_ns);

/* The next record, and slices that are open at the end. Return 0 or -ENOMEM. */
int top_objects_add(struct top_objects *objects, const struct kb_walk *walk);
int top_objects_run(struct top_objects *objects, const struct kb_slice *slice);

/*
 * Make the rows of the time @from ... @until: first what holds tasks up for a while, last what just goes on.
 * They hold until top_objects_end(). Returns 0 or -ENOMEM.
 */
int top_objects_finish(struct top_objects *objects, int64_t from, int64_t until);

/*
 * The rows, at most @most, with their names as far as @ns of CPU time suffice to find them, or more where they
 * did not; call it once. *@nr is their number.
 */
const struct top_object *top_objects_name(struct top_objects *objects, uint32_t most, int64_t ns, uint32_t *nr);

/* End a refresh. Returns 0 or -ENOMEM. */
int top_objects_end(struct top_objects *objects);

#endif
