/* SPDX-License-Identifier: MIT */
/*
 * What `kbarman report` has found out about a capture, between the reading of it
 * (report.c) and its printing, for people (report_text.c) and for programs
 * (report_json.c).
 */
#ifndef KBARMAN_REPORT_H
#define KBARMAN_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#include <kbarman/barman.h>
#include <kbarman/symbol.h>

#include "analysis/calltree.h"
#include "analysis/hot.h"
#include "analysis/losses.h"
#include "analysis/names.h"
#include "analysis/offcpu.h"
#include "analysis/sample_queue.h"
#include "analysis/sched.h"
#include "analysis/stops.h"
#include "analysis/timeline.h"
#include "sym/tasks.h"

/* Which samples count. Times are ns since the beginning. */
struct report_filter {
	const uint64_t *cpus;		/* bit map as of kb_cpulist_parse(); NULL: all */
	unsigned int nr_cpu_words;
	const char *task;		/* name; NULL: any */
	bool has_tid;
	uint32_t tid;			/* of a task or its process */
	uint64_t from, until;
	char *text;			/* as the user wrote it, for the head; NULL: none */
};

struct report {
	const char *path;
	struct report_filter filter;
	unsigned int sort;		/* KB_SORT_* of the table of samples */
	bool count;			/* samples, not weights */
	bool children;			/* with callers */
	bool call_graph;		/* print the tree of calls */
	bool counters;			/* a column for each */
	bool idle;			/* the idle loop is not told apart */
	double percent_limit;
	struct kb_symbol_options symbols;

	struct kb_barman *barman;
	const struct kb_header *header;
	struct kb_names *names;
	struct kb_tasks *tasks;
	struct kb_timeline *timeline;
	struct kb_symbolizer *symbolizer;
	struct kb_sample_queue samples;	/* whose symbols are far away yet */
	struct kb_hot *by_sort, *by_tid;	/* of samples with a PC */
	struct kb_hot *counts;		/* of all samples, by task; NULL: all have a PC */
	struct kb_carry *carry;		/* as above */
	struct kb_calltree *tree;	/* NULL: not asked for */
	struct kb_sched *sched;
	struct kb_offcpu *offcpu;
	struct kb_losses losses;
	struct kb_stops *stops;

	uint64_t events[KB_EVENT_HALT + 1];	/* by enum kb_event_type */
	uint64_t nr_events;
	uint64_t samples_without_pc;
	uint64_t filtered;		/* samples that do not count */
	uint32_t nr_cores;		/* that have events */
	bool *core_seen;		/* max_cores */
	uint64_t last_timestamp;	/* ticks, of the events */
	bool damaged;
	uint32_t cycles, instructions;	/* ids of these counters, UINT32_MAX: not there */

	/* When all is read: the tables, ordered. */
	const struct kb_hot_row *rows, *task_rows;
	const struct kb_hot_row *count_rows;
	uint32_t nr_count_rows;
	uint32_t nr_rows, nr_task_rows;		/* the last ones are of the idle loop: */
	uint32_t nr_work_rows, nr_work_task_rows;	/* how many are not */
	struct kb_hot_row totals;	/* of rows */
	uint64_t idle_samples, idle_weight;	/* of the idle loop's rows, if they are apart */
	struct report_tree {
		const struct kb_calltree_node *nodes;
		const uint32_t *order;		/* depth first */
		uint32_t nr;
	} calls, waiting;			/* of tree, of offcpu */
	const struct kb_wait *waits, *sleeps;	/* the longest; marks are nodes of waiting */
	uint32_t nr_waits, nr_sleeps;
	const struct kb_sched_task *sched_tasks;
	uint32_t nr_sched_tasks;
	uint64_t duration_ns;		/* that was recorded: analysis/recorded.h */
};

/*
 * Instructions per cycle of a row of @hot, without the samples whose counters do not cover the same
 * time; NAN if there are no others. False: they were not both counted. In all rows of a report,
 * or in none: @row NULL asks for that.
 */
bool report_ipc(const struct report *report, const struct kb_hot *hot,
		const struct kb_hot_row *row, double *ipc);

/* The event that samples; "samples" where the capture names none, or by count. */
struct kb_text report_weight_name(const struct report *report);

void report_print_text(const struct report *report);
/* 0 or a negative errno of writing. */
int report_print_json(const struct report *report);

#endif
