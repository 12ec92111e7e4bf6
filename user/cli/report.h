/* SPDX-License-Identifier: MIT */
/*
 * The results of `kbarman report`. report.c reads a capture and fills them in. report_text.c prints
 * them for people, report_json.c for programs.
 */
#ifndef KBARMAN_REPORT_H
#define KBARMAN_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#include <kbarman/barman.h>
#include <kbarman/symbol.h>
#include <kbarman/tasks.h>

#include "analysis/calltree.h"
#include "analysis/capture_names.h"
#include "analysis/hot.h"
#include "analysis/losses.h"
#include "analysis/offcpu.h"
#include "analysis/sample_queue.h"
#include "analysis/sched.h"
#include "analysis/stops.h"
#include "analysis/timeline.h"


/* Selects samples. Times are ns since the beginning of the capture. */
struct report_filter {
	const uint64_t *cpus;		/* bit map of kb_cpulist_parse(); NULL: all */
	unsigned int nr_cpu_words;
	const char *task;		/* name; NULL: any */
	bool has_tid;
	uint32_t tid;			/* number of a task or of its process */
	uint64_t from, until;
	char *text;			/* the user's options, for the head; NULL: none */
};

struct report {
	const char *path;
	struct report_filter filter;
	unsigned int sort;		/* KB_SORT_* of the table of samples */
	bool count;			/* count samples, don't weigh them */
	bool children;			/* add up callees for each function */
	bool call_graph;		/* print the tree of calls */
	bool counters;			/* print a column for each counter */
	bool idle;			/* list the idle loop as any other function */
	double percent_limit;
	struct kb_symbol_options symbols;

	struct kb_barman *barman;
	const struct kb_header *header;
	struct kb_names *names;
	struct kb_tasks *tasks;
	struct kb_timeline *timeline;
	struct kb_symbolizer *symbolizer;
	struct kb_sample_queue samples;	/* samples that wait for their symbols */
	struct kb_hot *by_sort, *by_tid;	/* samples with a PC */
	struct kb_hot *counts;		/* all samples, by task; NULL: no samples without a PC */
	struct kb_carry *carry;		/* NULL: no samples without a PC */
	struct kb_calltree *tree;	/* NULL: not asked for */
	struct kb_sched *sched;
	struct kb_offcpu *offcpu;
	struct kb_losses losses;
	struct kb_stops *stops;

	uint64_t events[KB_EVENT_HALT + 1];	/* by enum kb_event_type */
	uint64_t nr_events;
	uint64_t samples_without_pc;
	uint64_t filtered;		/* samples that the filter excludes */
	uint32_t nr_cores;		/* cores with events */
	bool *core_seen;		/* max_cores */
	uint64_t last_timestamp;	/* ticks, of the last event */
	bool damaged;
	uint32_t cycles, instructions;	/* ids of these counters, UINT32_MAX: not counted */

	/* After the whole capture was read: the sorted tables. */
	const struct kb_hot_row *rows, *task_rows;
	const struct kb_hot_row *count_rows;
	uint32_t nr_count_rows;
	uint32_t nr_rows, nr_task_rows;		/* all rows; those of the idle loop are last */
	uint32_t nr_work_rows, nr_work_task_rows;	/* rows other than those of the idle loop */
	struct kb_hot_row totals;	/* sum of all rows */
	uint64_t idle_samples, idle_weight;	/* sums of the idle loop's rows, if separate */
	struct report_tree {
		const struct kb_calltree_node *nodes;
		const uint32_t *order;		/* depth first */
		uint32_t nr;
	} calls, waiting;			/* calls: from tree; waiting: from offcpu */
	const struct kb_wait *waits, *sleeps;	/* the longest; their marks are nodes of waiting */
	uint32_t nr_waits, nr_sleeps;
	const struct kb_sched_task *sched_tasks;
	uint32_t nr_sched_tasks;
	uint64_t duration_ns;		/* the recorded time: analysis/recorded.h */
};

/*
 * Instructions per cycle of a row of @hot, without samples whose counters do not cover the same
 * time. NAN: the row has no other samples. False: cycles and instructions were not both counted.
 * The result is the same for all rows of a report, and for @row NULL.
 */
bool report_ipc(const struct report *report, const struct kb_hot *hot,
		const struct kb_hot_row *row, double *ipc);

/* The name of the sampling event; "samples" if the capture has none, or with --count. */
struct kb_text report_weight_name(const struct report *report);

void report_print_text(const struct report *report);
/* Returns 0, or the negative errno of a write error. */
int report_print_json(const struct report *report);

#endif
