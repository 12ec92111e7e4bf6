/* SPDX-License-Identifier: MIT */
/*
 * Where samples fell: the table of `kbarman report`. The weight of a sample is the increase of
 * the first counter, the one that samples, since the previous sample. A sample without that
 * value gets the average weight of the others.
 */
#ifndef KB_LIB_ANALYSIS_HOT_H
#define KB_LIB_ANALYSIS_HOT_H

#include <stdbool.h>
#include <stdint.h>

#include <kbarman/barman.h>
#include <kbarman/symbol.h>
#include <kbarman/tasks.h>

#include "analysis/capture_names.h"

/* What makes rows different. Everything else is summed up. */
#define KB_SORT_TASK	(1U << 0)	/* the task's name at the time */
#define KB_SORT_TID	(1U << 1)
#define KB_SORT_IMAGE	(1U << 2)
#define KB_SORT_SYMBOL	(1U << 3)	/* of one image */
#define KB_SORT_CPU	(1U << 4)
#define KB_SORT_LINE	(1U << 5)	/* of a source file; includes the image */
#define KB_SORT_IDLE	(1U << 6)	/* rows of the idle loop are separate, behind all others */

/* Fields that are not in the sort key are those of the row's first sample. */
struct kb_hot_row {
	uint64_t key[4];

	/* Each sample changes these. They and the key fit into one cache line. */
	uint64_t samples;
	uint64_t weight;
	uint64_t unweighed;	/* samples that have no weight */
	uint64_t partial;	/* samples added by kb_hot_add_partial() */
	uint64_t last_sample;	/* last sample added here, so that recursion counts once */

	uint64_t children;	/* weight of the samples here and in functions called from here;
				 * only of the latter until kb_hot_rows() */
	uint64_t nr_callers;	/* number of samples in called functions */
	uint64_t callers_unweighed;
	const char *task;
	const char *image, *image_base;
	const char *symbol;	/* "" where unknown */
	uint64_t address;	/* start address of a kernel function; 0 for others */
	const char *file;	/* "" where unknown or not requested */
	uint32_t line;
	uint32_t task_id;
	uint32_t core;
	uint32_t sums;		/* for kb_hot_counter() */
	bool kernel, inlined;
	bool idle;		/* set only with KB_SORT_IDLE */
};

struct kb_hot;

/* @tasks must live as long as the table. */
int kb_hot_create(struct kb_hot **out, const struct kb_tasks *tasks, unsigned int sort,
		  struct kb_error *err);
void kb_hot_destroy(struct kb_hot *hot);

/*
 * Call it before any sample: sum up all counters by the ids of @names, which must live as
 * long as the table. Returns 0 or -ENOMEM.
 */
int kb_hot_sum_counters(struct kb_hot *hot, const struct kb_names *names);

/* The increase of counter @id in the samples of @row. Invalid values are left out. */
uint64_t kb_hot_counter(const struct kb_hot *hot, const struct kb_hot_row *row, uint32_t id);

/* The same without samples of kb_hot_add_partial(). Use it for quotients of two counters. */
uint64_t kb_hot_whole_counter(const struct kb_hot *hot, const struct kb_hot_row *row,
			      uint32_t id);

/* Add a sample with a PC; @frame is where it fell. Returns 0 or -ENOMEM. */
int kb_hot_add(struct kb_hot *hot, const struct kb_event *event, const struct kb_frame *frame);

/* The same for a sample whose counters do not cover the same time. */
int kb_hot_add_partial(struct kb_hot *hot, const struct kb_event *event,
		       const struct kb_frame *frame);

/* Add a caller from the call chain of the sample that was added last. Returns 0 or -ENOMEM. */
int kb_hot_add_caller(struct kb_hot *hot, const struct kb_event *event,
		      const struct kb_frame *frame);

/*
 * All rows, the heaviest first, or with @count those with the most samples. The order depends
 * only on the capture. NULL without memory. Nothing can be added afterwards. Of the totals only
 * samples, weight and partial are set.
 */
const struct kb_hot_row *kb_hot_rows(struct kb_hot *hot, bool count, uint32_t *nr,
				     struct kb_hot_row *totals);

/* The number of rows that are not of the idle loop. These rows come first. */
uint32_t kb_hot_work(const struct kb_hot_row *rows, uint32_t nr);

#endif
