/* SPDX-License-Identifier: MIT */
/*
 * All samples of a capture in memory, ordered by thread and time, for formats that have all of
 * a thread in one place. A sample takes 40 bytes.
 */
#ifndef KB_LIB_EXPORT_KEEP_H
#define KB_LIB_EXPORT_KEEP_H

#include <stddef.h>
#include <stdint.h>

struct kb_kept {
	int64_t ns;
	uint64_t weight;	/* increase of the first counter, or KB_COUNTER_INVALID */
	uint64_t cpu_ns;	/* see cputime.h; 0 unless requested */
	uint32_t task, node;	/* numbers from task_table.h and stack_table.h */
	uint32_t order;		/* position in the capture */
};

struct kb_keep {
	struct kb_kept *rows;
	size_t nr, max;
};

/* An empty one is all zero. Returns 0 or -ENOMEM. */
int kb_keep_add(struct kb_keep *keep, const struct kb_kept *sample);
void kb_keep_release(struct kb_keep *keep);

/* Sort by task, then time, then order. */
void kb_keep_sort(struct kb_keep *keep);

/* After sorting: the number of samples from @at on that have the same task. */
size_t kb_keep_run(const struct kb_keep *keep, size_t at);

#endif
