/* SPDX-License-Identifier: MIT */
/*
 * Where samples fell: the table of `kbarman report`. A sample weighs as much as the
 * first counter, the one that samples, advanced since the sample before it; samples
 * without such a value weigh as much as the others do on average.
 */
#ifndef KB_LIB_ANALYSIS_HOT_H
#define KB_LIB_ANALYSIS_HOT_H

#include <stdbool.h>
#include <stdint.h>

#include <kbarman/barman.h>
#include <kbarman/symbol.h>

#include "analysis/names.h"
#include "sym/tasks.h"

/* What tells rows apart; the rest is summed up. */
#define KB_SORT_TASK	(1U << 0)	/* the task's name at the time */
#define KB_SORT_TID	(1U << 1)
#define KB_SORT_IMAGE	(1U << 2)
#define KB_SORT_SYMBOL	(1U << 3)	/* of one image */
#define KB_SORT_CPU	(1U << 4)
#define KB_SORT_LINE	(1U << 5)	/* of a source file; includes the image */
#define KB_SORT_IDLE	(1U << 6)	/* the idle loop has rows of its own, behind all others */

/* Fields that are not sorted by are those of the row's first sample. */
struct kb_hot_row {
	uint64_t key[4];

	/* What each sample changes, as much as a line of the cache has with the key. */
	uint64_t samples;
	uint64_t weight;
	uint64_t unweighed;	/* samples without a weight */
	uint64_t partial;	/* samples of kb_hot_add_partial() */
	uint64_t last_sample;	/* that was added here: recursion counts once */

	uint64_t children;	/* weight of the samples here and in what was called from
				 * here; before the end, only of the latter */
	uint64_t nr_callers;	/* samples among those */
	uint64_t callers_unweighed;
	const char *task;
	const char *image, *image_base;
	const char *symbol;	/* "" where unknown */
	uint64_t address;	/* where it begins, in the kernel; 0 elsewhere */
	const char *file;	/* "" where unknown, or not asked for */
	uint32_t line;
	uint32_t task_id;
	uint32_t core;
	uint32_t sums;		/* kb_hot_counter()'s */
	bool kernel, inlined;
	bool idle;		/* only with KB_SORT_IDLE */
};

struct kb_hot;

/* @tasks must stay. */
int kb_hot_create(struct kb_hot **out, const struct kb_tasks *tasks, unsigned int sort,
		  struct kb_error *err);
void kb_hot_destroy(struct kb_hot *hot);

/*
 * From now on, before any sample, sum up all counters of @max_cores cores: by the ids of
 * @names, which stay. 0 or -ENOMEM.
 */
int kb_hot_sum_counters(struct kb_hot *hot, const struct kb_names *names,
			uint32_t max_cores);

/* What counter @id advanced in the samples of @row; invalid values are left out. */
uint64_t kb_hot_counter(const struct kb_hot *hot, const struct kb_hot_row *row, uint32_t id);

/* The same without the samples of kb_hot_add_partial(): for quotients of two counters. */
uint64_t kb_hot_whole_counter(const struct kb_hot *hot, const struct kb_hot_row *row,
			      uint32_t id);

/* A sample with a PC, which is in @frame. 0 or -ENOMEM. */
int kb_hot_add(struct kb_hot *hot, const struct kb_event *event, const struct kb_frame *frame);

/* The same, and its counters do not cover the same time. */
int kb_hot_add_partial(struct kb_hot *hot, const struct kb_event *event,
		       const struct kb_frame *frame);

/* A frame of the call chain of the sample that was added last. 0 or -ENOMEM. */
int kb_hot_add_caller(struct kb_hot *hot, const struct kb_event *event,
		      const struct kb_frame *frame);

/*
 * All rows, the heaviest first, in an order that only the capture decides; by number of
 * samples with @count. NULL without memory. Nothing can be added afterwards. The totals'
 * fields other than samples, weight and partial are not set.
 */
const struct kb_hot_row *kb_hot_rows(struct kb_hot *hot, bool count, uint32_t *nr,
				     struct kb_hot_row *totals);

/* How many of those rows are not of the idle loop; they come first. */
uint32_t kb_hot_work(const struct kb_hot_row *rows, uint32_t nr);

#endif
