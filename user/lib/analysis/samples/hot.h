/* SPDX-License-Identifier: MIT */
/*
 * analysis/samples/: where samples fell: sums by name, line or chain (hot.h), trees of calls
 * (calltree.h), waits by stack (offcpu.h); and what their counters mean together, in turns, and as
 * metrics.
 *
 * Where samples fell: the tables of samples of kbarman/report.h.
 */
#ifndef KB_LIB_ANALYSIS_SAMPLES_HOT_H
#define KB_LIB_ANALYSIS_SAMPLES_HOT_H

#include <stdbool.h>
#include <stdint.h>

#include <kbarman/report.h>

#include "analysis/facts/capture_names.h"
#include "analysis/facts/process_notes.h"
#include "analysis/samples/count_sets.h"
#include "analysis/samples/spots.h"

/* Beside those of kbarman/report.h: rows of the idle loop are separate, behind all others; */
#define KB_SORT_IDLE	(1U << 31)
/* ... and kb_hot_add_caller() is called. */
#define KB_SORT_CALLERS	(1U << 30)

struct kb_hot;

/* @tasks and @spots must live as long as the table. */
int kb_hot_create(struct kb_hot **out, const struct kb_tasks *tasks, struct kb_spots *spots,
		  unsigned int sort, struct kb_error *err);
void kb_hot_destroy(struct kb_hot *hot);

/* With KB_SORT_CGROUP, call it before any sample: @notes, which must live as long, have the cgroups. */
void kb_hot_take_notes(struct kb_hot *hot, const struct kb_process_notes *notes);

/* NULL: not known, or rows do not differ in it. */
const char *kb_hot_cgroup(const struct kb_hot *hot, const struct kb_sample_row *row);

/*
 * Call it before any sample: sum up all counters by the ids of @names, which must live as
 * long as the table. Returns 0 or -ENOMEM.
 */
int kb_hot_sum_counters(struct kb_hot *hot, const struct kb_names *names);

/* The increase of counter @id in the samples of @row. Invalid values are left out. */
uint64_t kb_hot_counter(const struct kb_hot *hot, const struct kb_sample_row *row, uint32_t id);

/* The same, of samples of some sets: @sets has a bit for each. Use it for quotients of counters. */
uint64_t kb_hot_counter_of(const struct kb_hot *hot, const struct kb_sample_row *row, uint32_t id,
			   uint32_t sets);

/* Add a sample with a PC; @frame is where it fell. Returns 0 or -ENOMEM. */
int kb_hot_add(struct kb_hot *hot, const struct kb_event *event, const struct kb_frame *frame);

/* What a sample adds to a row, for those who add it to several tables. */
struct kb_share {
	uint64_t weight;
	bool weighed;
	bool partial;			/* counters of the sample do not cover the same time */
	uint8_t set;			/* number of the set of its counters; 0, if nobody asks */
	uint32_t core;
	uint32_t nr_counters;
	const uint64_t *counters;	/* those of the event */
	const uint32_t *ids;		/* of the counters */
};

/* Fill @share for @event. @names: those of the tables; NULL: tables that sum up no counters. */
void kb_share_take(struct kb_share *share, const struct kb_names *names,
		   const struct kb_event *event, bool partial);

/* kb_hot_add() with a share of @event, at @spot, of which the spots have a note. */
int kb_hot_add_share(struct kb_hot *hot, const struct kb_event *event, const struct kb_spot *spot,
		     const struct kb_share *share);

/* Add a caller from the call chain of the sample that was added last. Returns 0 or -ENOMEM. */
int kb_hot_add_caller(struct kb_hot *hot, const struct kb_event *event,
		      const struct kb_frame *frame);

/*
 * Fill @table with all rows, the heaviest first, or with @count those with the most samples. The
 * order depends only on the capture. False without memory. Nothing can be added afterwards. Of the
 * totals only samples, weight and partial are set.
 */
bool kb_hot_finish(struct kb_hot *hot, bool count, struct kb_sample_table *table,
		   struct kb_sample_row *totals);

/* Row @i of the table, below table->nr. */
struct kb_sample_row kb_hot_row(struct kb_hot *hot, uint32_t i);

#endif
