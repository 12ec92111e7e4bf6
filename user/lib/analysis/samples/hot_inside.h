/* SPDX-License-Identifier: MIT */
/* A table of samples for its own files: hot_add.c adds samples to its rows, hot_rows.c reads the rows. */
#ifndef KB_LIB_ANALYSIS_SAMPLES_HOT_INSIDE_H
#define KB_LIB_ANALYSIS_SAMPLES_HOT_INSIDE_H

#include "analysis/facts/name_ids.h"
#include "analysis/samples/hot.h"
#include "base/table.h"

#define KB_HOT_QUEUE	32U	/* frames that wait; a power of two */
#define KB_HOT_TASKS	256U	/* tasks whose row is remembered; a power of two */

/* What a row sums up; in the table it is behind the key. There may be very many of them. */
struct hot_tally {
	uint64_t samples;
	uint64_t weight;		/* of the samples that have one */
	uint32_t task_id, comm, core;	/* of its first sample, as all below */
	uint32_t symbol, line;
	bool inlined, idle;
};

/* What most rows have nothing of. */
struct hot_more {
	uint64_t unweighed;		/* samples without a weight */
	uint64_t partial;		/* samples whose counters do not cover the same time */
	uint64_t last_sample;		/* number of the last sample here or below; from here on
					 * for callers only */
	uint64_t nr_callers;		/* samples in functions that were called from here, */
	uint64_t children;		/* their weights, */
	uint64_t callers_unweighed;	/* and those without one */
};

/* A frame that waits to be added to its row. */
struct hot_waiting {
	uint64_t key[6], hash;
	uint64_t sample;		/* number of its sample, from 1 on */
	struct kb_share share;
	uint32_t task_id, comm;
	struct kb_spot spot;
	bool caller;			/* the frame is a caller, not where the sample fell */
	bool idle;
};

struct kb_hot {
	unsigned int sort;
	struct kb_table rows;
	struct kb_name_ids comms;
	struct kb_spots *spots;
	uint64_t samples;		/* added so far, including those that wait */
	bool idle;			/* whether the last sample is idle, if rows depend on it */
	uint32_t judged;		/* the symbol that the idle task was in last, */
	bool judged_idle;		/* and whether that is the idle loop */
	bool image_key, line_key, cgroup_key, pid_key;	/* these are words of the key */
	const struct kb_process_notes *notes;	/* that have the cgroups */

	struct hot_waiting queue[KB_HOT_QUEUE];	/* frame number n is at n % KB_HOT_QUEUE */
	uint64_t first, next;		/* numbers of the frames that wait: [first, next) */

	bool by_task;			/* a row is a task: it is found without a hash */
	struct {
		uint32_t task_id;
		uint32_t row;		/* its number + 1; 0: none */
	} tasks[KB_HOT_TASKS + 1];	/* the last one: the idle loop */

	struct hot_more *more;		/* by row; */
	uint32_t max_more;		/* number of rows that have it */

	const struct kb_names *names;	/* NULL: only the first counter is summed up */
	uint32_t nr_counters;
	bool single;			/* each core has only that counter: its sum is the weight */
	uint32_t max_of_core;		/* largest number of counters of a core */
	uint64_t *counters;		/* of the waiting frames, max_of_core each */
	uint64_t *sums;			/* row r has its sums from sums[r * nr_counters] on */
	uint32_t max_sums;		/* number of rows with room in sums */
	struct {
		uint64_t *sums;		/* as sums, of the samples of one set; NULL: none yet */
		uint32_t max;
	} sets[KB_COUNT_SETS];		/* set 0 has what is in none of the others */

	/* once the rows are in order: */
	struct hot_place *order;
	uint32_t in_order;		/* so many of them are in their order; the others are lighter */
	uint32_t nr_work;		/* behind these are those of the idle loop, in their order */
	bool count;			/* the weight of a row is the number of its samples */
	uint64_t mean;			/* weight of samples that have none */
};

/* A row in the order of the heaviest. */
struct hot_place {
	uint64_t weight;		/* with callers */
	uint32_t row;
	bool idle;
};

static inline struct hot_tally *hot_tally(const struct kb_hot *hot, uint32_t row)
{
	return (struct hot_tally *)((uint64_t *)kb_table_row(&hot->rows, row) +
				    hot->rows.key_words);
}

/* Add the frame that has waited longest. Returns 0 or -ENOMEM. */
int hot_add_first(struct kb_hot *hot);

#endif
