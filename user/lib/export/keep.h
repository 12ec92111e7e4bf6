/* SPDX-License-Identifier: MIT */
/*
 * The samples of a capture kept in memory, by thread and time, for formats that have all
 * of one thread in one place; 40 bytes each.
 */
#ifndef KB_LIB_EXPORT_KEEP_H
#define KB_LIB_EXPORT_KEEP_H

#include <stddef.h>
#include <stdint.h>

struct kb_kept {
	int64_t ns;
	uint64_t weight;	/* what the first counter advanced, or KB_COUNTER_INVALID */
	uint64_t cpu_ns;	/* see cputime.h; 0 unless asked for */
	uint32_t task, node;	/* numbers, of taskids.h and callstacks.h */
	uint32_t order;		/* in the capture */
};

struct kb_keep {
	struct kb_kept *rows;
	size_t nr, max;
};

/* All zero is empty. 0 or -ENOMEM. */
int kb_keep_add(struct kb_keep *keep, const struct kb_kept *sample);
void kb_keep_release(struct kb_keep *keep);

/* By task, then time, then order. */
void kb_keep_sort(struct kb_keep *keep);

/* Behind that: how many from @at on are of the same task. */
size_t kb_keep_run(const struct kb_keep *keep, size_t at);

#endif
