/* SPDX-License-Identifier: MIT */
/* A capture while it is read: read.c fills the rows, put.c gives them their texts. */
#ifndef KB_LIB_ANALYSIS_DIFF_READING_H
#define KB_LIB_ANALYSIS_DIFF_READING_H

#include "analysis/diff/series.h"
#include "analysis/facts/idle_states.h"
#include "analysis/facts/name_ids.h"
#include "analysis/latency/wakeups.h"
#include "analysis/samples/calltree.h"
#include "analysis/samples/carry.h"
#include "analysis/samples/cputime.h"
#include "analysis/samples/offcpu.h"
#include "analysis/samples/rotated.h"
#include "analysis/trace/wanted.h"

#define KB_DIFF_COUNTERS	16U
#define KB_DIFF_STATES		257U	/* the unknown one is 0 */

/* A function, by its id of the symbolizer. */
struct kb_diff_symbol {
	const char *name, *image;
	bool kernel;
};

/* The times until tasks ran, by name. */
struct kb_diff_delays {
	struct kb_sliced_times *rows;
	uint32_t nr;
};

struct kb_diff_reading {
	struct kb_diff_table *table;
	struct kb_diff_capture *capture;
	struct kb_trace *trace;
	const struct kb_header *header;
	const struct kb_tasks *tasks;
	const struct kb_names *names;
	struct kb_symbolizer *symbolizer;
	struct kb_slicing slicing;
	struct kb_wanted wanted;
	int64_t from, until;		/* ns: the time that is wanted */

	/* what knows what records mean */
	struct kb_cputime times;
	struct kb_carry *carry;		/* NULL: all samples have a place */
	struct kb_rotated *rotated;	/* says which counters take turns; NULL: none */
	struct kb_sched *sched;
	struct kb_offcpu *offcpu;
	struct kb_calltree *calls;
	struct kb_tiles *tiles;
	struct kb_gaps gaps;
	struct kb_wakeups *wakeups;
	struct kb_idle_states states;
	struct kb_name_ids ids;

	/* names of the rows */
	const char **tasks_called;	/* by number of a name */
	uint32_t nr_called;
	struct kb_diff_symbol *symbols;		/* by id */
	uint32_t nr_symbols;
	struct kb_table origins;	/* of interrupts */
	struct kb_table objects;	/* by text of the table: what tasks wait for */
	struct kb_table waiting;	/* by task: the number of its object, + 1 */
	const struct kb_calltree_node *nodes;	/* of the tree whose rows are put */
	int64_t *places;		/* by node: in the table; 0: not looked up yet */
	uint32_t state_cores[KB_DIFF_STATES];	/* a CPU that was in that idle state, + 1 */

	/* the rows */
	struct kb_diff_set cpu_task, sampled_task, cpu_symbol, cpu_chain;
	struct kb_diff_set wait_task, wait_chain, wait_object;
	struct kb_diff_set delay, delay_count;	/* by task */
	struct kb_diff_delays delays;
	struct kb_sliced_times delays_all;
	struct kb_diff_set idle, irq;
	struct kb_diff_set by_task[KB_DIFF_COUNTERS], by_symbol[KB_DIFF_COUNTERS];
	uint32_t nr_counters;
	uint64_t wakings;
	bool has_switches;		/* else samples say how long tasks ran */
	uint64_t last_ticks;
	bool no_memory;
};

/* Put all rows into the table, with their texts. Returns 0 or -ENOMEM. */
int kb_diff_put(struct kb_diff_reading *reading);

#endif
