/* SPDX-License-Identifier: MIT */
/*
 * What `kbarman report` shows, as numbers: where samples fell, how tasks and CPUs spent their time,
 * where tasks waited, how CPUs idled, and what is missing.
 *
 *	struct kb_report_options options = { .size = sizeof(options), .sort = KB_SORT_TASK };
 *	const struct kb_report *report;
 *
 *	if (kb_report_create(&report, trace, &options, &err) < 0)
 *		errx(1, "%s", kb_error_text(&err));
 *	for (uint32_t i = 0; i < report->samples.nr; i++) {
 *		struct kb_sample_row row = kb_report_sample(&report->samples, i);
 *
 *		printf("%8llu  %s\n", (unsigned long long)row.samples, row.task);
 *	}
 *
 * A report belongs to the thread that uses its trace. Later versions of the library may add members
 * at the ends of the structs here, which the library allocates.
 */
#ifndef KBARMAN_REPORT_H
#define KBARMAN_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <kbarman/filter.h>
#include <kbarman/losses.h>
#include <kbarman/metrics.h>
#include <kbarman/names.h>
#include <kbarman/tiles.h>
#include <kbarman/trace.h>
#include <kbarman/waits.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What makes rows of samples different. Everything else is summed up. */
#define KB_SORT_TASK	(1U << 0)	/* the task's name at the time */
#define KB_SORT_TID	(1U << 1)
#define KB_SORT_IMAGE	(1U << 2)
#define KB_SORT_SYMBOL	(1U << 3)	/* of one image */
#define KB_SORT_CPU	(1U << 4)
#define KB_SORT_LINE	(1U << 5)	/* of a source file; includes the image */
#define KB_SORT_PID	(1U << 6)	/* the process */
#define KB_SORT_MODE	(1U << 7)	/* the kernel, or user code */
#define KB_SORT_CGROUP	(1U << 8)	/* of the process: see kb_report_cgroup() */

/* What to read, and how. All zero behind `size` is the default of `kbarman report`. */
struct kb_report_options {
	size_t size;		/* of this struct, as the caller knows it: sizeof() */
	unsigned int sort;	/* KB_SORT_*; 0: task, image and symbol */
	bool count;		/* count samples, do not weigh them */
	bool children;		/* add to each function the weight of what it called */
	bool call_graph;	/* make the tree of calls */
	bool idle;		/* the idle loop is a function as any other */

	/*
	 * Only a part of the capture, for all tables. Of times those parts count that are in the time
	 * that is wanted; waits with a row of their own are chosen by when they began. The tables of
	 * CPUs have all tasks. NULL: all. It is copied; what it refers to must live as long as the
	 * report.
	 */
	const struct kb_filter *filter;
};

/*
 * Samples that are equal in what they are sorted by. Other members are those of the first one. The
 * weight of a sample is the increase of the first counter, the one that samples, since the sample
 * before it. A sample without that value gets the average weight of the others. Strings live as
 * long as the trace.
 */
struct kb_sample_row {
	uint64_t samples;
	uint64_t weight;
	uint64_t partial;	/* samples whose counters do not cover the same time */
	uint64_t children;	/* weight of the samples here and in functions called from here */
	uint64_t nr_callers;	/* number of samples in called functions */
	const char *task;
	const char *image, *image_base;
	const char *symbol;	/* "" where unknown */
	uint64_t address;	/* start address of a kernel function; 0 for others */
	const char *file;	/* "" where unknown or not requested */
	uint32_t line;
	uint32_t task_id;
	uint32_t core;
	uint32_t number;	/* internal */
	bool kernel, inlined;
	bool idle;		/* of the idle loop, if that is not a function as any other */
	uint32_t pid;		/* with KB_SORT_PID; otherwise 0 */
};

struct kb_hot;

/*
 * Rows, the heaviest first, or with options->count those with the most samples: see
 * kb_report_sample().
 */
struct kb_sample_table {
	uint32_t nr;		/* number of rows; those of the idle loop are the last ones, */
	uint32_t nr_work;	/* and these are all others */
	struct kb_hot *hot;	/* internal */
};

/* How a task spent its time. */
struct kb_sched_task {
	uint64_t key;			/* the task id */
	uint64_t runs;			/* number of switches to the task */
	uint64_t preempted, blocked;	/* number of switches away from it, by reason */
	uint64_t run_ns;
	uint64_t preempted_ns;		/* from each preemption until it ran again */
	uint64_t blocked_ns;		/* the same, blocked */
	uint64_t longest_ns;		/* the longest of these waits, */
	int64_t longest_at;		/* ... when it began (ns), */
	bool longest_blocked, longest_asleep;	/* ... and its kind */
	uint32_t migrations;		/* times that it ran on another CPU than before */

	bool waits, waits_blocked, waits_asleep, seen;	/* internal: the open wait */
	uint32_t mark;			/* internal */
	uint64_t mark_ticks;		/* internal */
	uint32_t last_core;		/* internal */
	int64_t waits_since;		/* internal */
	uint64_t last_seen;		/* ticks; the task is named by its name at that time */
	struct kb_origin waker;		/* internal: who ended the open wait, */
	uint64_t woken;			/* ... and when */
};

struct kb_sched_state {
	uint64_t count;			/* how often a CPU was in this state */
	uint64_t ns, longest_ns;
};

/* Idle states: cpuidle index + 1; 0 is "unknown". */
#define KB_SCHED_STATES		256

/* How a CPU spent its time. */
struct kb_sched_cpu {
	bool seen;
	uint64_t switches;
	uint64_t busy_ns;		/* time of tasks other than idle */
	uint64_t awake_ns;		/* time of the idle task outside of halts */
	uint64_t halted_ns;
	uint64_t lost_ns;		/* time in which records are missing */
	uint64_t lost;			/* lost records, from the records at the gaps */
	struct kb_sched_state *states;	/* KB_SCHED_STATES rows; NULL: the CPU never halted */
};

/* A wait that is over. */
struct kb_wait {
	uint32_t task_id;
	uint32_t core;			/* where it began */
	uint32_t mark;			/* the node of the tree of waiting where the task waited */
	uint64_t ticks;			/* when it began; 0: not known */
	bool blocked;			/* false: preempted */
	bool asleep;			/* blocked so that a signal could end it: most likely it
					 * had nothing to do */
	int64_t since;			/* ns, as kb_barman_ns() */
	uint64_t ns;
	struct kb_origin waker;		/* who ended it; kind unknown: no record says so */
	uint64_t woken;			/* ticks: when */
};

/*
 * A tree of call chains. Below the root are names of tasks, below these are frames, outermost
 * first. The weights of waiting are nanoseconds.
 */
struct kb_calltree_node {
	uint64_t key[2];	/* internal */
	const char *name;	/* of a task or a symbol; "" where unknown */
	const char *image_base;	/* "" for tasks */
	bool kernel;
	bool inlined;
	uint32_t parent;	/* number of the parent; the root is its own parent */
	uint32_t depth;		/* the root has 0, tasks 1 */
	uint64_t samples;	/* samples on this node itself */
	uint64_t unweighed;	/* internal */
	uint64_t self, total;	/* weight of the node, and with all below it */
};

#define KB_CALLTREE_ROOT	0U

struct kb_call_tree {
	const struct kb_calltree_node *nodes;	/* parents before children; NULL: no tree */
	const uint32_t *order;			/* their numbers, depth first, siblings by name */
	uint32_t nr;
};

/* All stops of the first counter of one CPU for one reason. */
struct kb_stop {
	uint32_t core;
	const char *reason;	/* as in the fact kbarman.stopped.CPU.REASON */
	uint64_t times;
	uint64_t ns;		/* upper limit of their sum, from the records; 0: not known */
	int64_t first, last;	/* ns; start of the first, end of the last; valid if ns is not 0 */
};

enum kb_last_state {
	KB_LAST_RAN,		/* in the last second */
	KB_LAST_RUNS,		/* the same, and it still ran at the end */
	KB_LAST_RUNNABLE,	/* it could run, and another task ran */
	KB_LAST_WAITS,
};

/* A task at the end of a recording. A task that ran in the last second and waits then has two rows. */
struct kb_last_task {
	enum kb_last_state state;
	uint32_t core;		/* where it ran; for which it was woken; where it ran before it waited */
	uint32_t task_id;
	uint64_t ticks;		/* when its state began, as since */
	int64_t since;		/* ns; of KB_LAST_RAN: 0 */
	uint64_t ran_ns;	/* of it and KB_LAST_RUNS: on that CPU, in the last second */
	uint32_t holds_up;	/* so many tasks wait for a lock that this one holds */

	/* Of KB_LAST_WAITS: */
	struct kb_waits_row object;	/* for what, without names of tasks and times */
	uint32_t holder;	/* who has the lock; 0: it is none, or not known */
	bool held_up;		/* by a lock or a disk, or where no signal helps */
	bool is_older;		/* it has waited for longer than a second */
};

struct kb_last_second {
	int64_t from, until;	/* ns */
	const struct kb_last_task *rows;	/* by CPU, then by state */
	uint32_t nr;
};

/* The results. All times in ns are as kb_barman_ns() or lengths. */
struct kb_report {
	bool damaged;			/* the capture is; its undamaged part is reported */
	uint64_t duration_ns;		/* kb_trace_duration() */
	uint64_t last_timestamp;	/* ticks, of the last record in the time that counts: tasks have
					 * the names that they had then */
	uint64_t records;
	uint64_t backwards;		/* of these: older than the one before them on their CPU */
	uint64_t events[KB_EVENT_HALT + 1];	/* records by enum kb_event_type */
	uint32_t nr_cores;		/* cores with records */
	struct kb_text weight_of;	/* the event that weighs samples; else "samples" */

	struct kb_sample_table samples;	/* samples with a PC, by options->sort */
	struct kb_sample_table tasks;	/* the same samples by task */
	struct kb_sample_table counts;	/* all samples by task, if counters were also read
					 * without a PC; else no rows, and `hot` is NULL */
	struct kb_sample_row totals;	/* sums of the samples: only samples, weight and partial */
	uint64_t idle_samples, idle_weight;	/* sums of the idle loop's rows, if separate */
	uint64_t samples_without_pc;
	uint64_t filtered;		/* samples that the options exclude */
	struct kb_call_tree calls;	/* with options->call_graph */

	const struct kb_sched_task *sched_tasks;	/* longest running time first */
	uint32_t nr_sched_tasks;
	const struct kb_sched_cpu *cpus;	/* max_cores of the header */
	struct kb_call_tree waiting;	/* where tasks waited until they ran again */
	bool waiting_has_chains;	/* switches have call chains */
	const struct kb_wait *waits, *sleeps;	/* the longest waits, and of those asleep */
	uint32_t nr_waits, nr_sleeps;

	const struct kb_losses *losses;
	const struct kb_stop *stops;	/* by CPU and reason */
	uint32_t nr_stops;
	uint64_t wanted_ns;		/* the part of duration_ns that options->filter wants */
	struct kb_last_second last;	/* of a recording that ended with the machine, if all of it is
					 * wanted; else no rows */
};

/*
 * Read all of @trace, which must live as long as the report. Nothing else reads the trace
 * meanwhile. Returns 0; 1 if the capture is damaged: @err says where, and the report is of
 * everything that is whole; or a negative errno, then there is no report: the errors of
 * kb_trace_rewind() and of kb_trace_symbolizer(), -EINVAL and -ENOMEM. @options may be NULL.
 * kb_report_destroy() frees the report, which may be NULL.
 */
int kb_report_create(const struct kb_report **out, struct kb_trace *trace,
		     const struct kb_report_options *options, struct kb_error *err);
void kb_report_destroy(const struct kb_report *report);

/* Row @i of @table, which has more rows than that. Its strings live as long as the report. */
struct kb_sample_row kb_report_sample(const struct kb_sample_table *table, uint32_t i);

/* With KB_SORT_CGROUP: the path of the cgroup of @row of @table. NULL: the capture does not say. */
const char *kb_report_cgroup(const struct kb_sample_table *table, const struct kb_sample_row *row);

/* The increase of counter @id in the samples of @row of @table. Values not read are left out. */
uint64_t kb_report_counter(const struct kb_sample_table *table, const struct kb_sample_row *row,
			   uint32_t id);

/*
 * Instructions per cycle of @row of @table, without samples whose counters do not cover the same
 * time. NAN: the row has no other samples. Returns false if cycles and instructions were not both
 * counted. That is the same for all rows, and @table, @row and @ipc may be NULL to ask for it.
 */
bool kb_report_ipc(const struct kb_report *report, const struct kb_sample_table *table,
		   const struct kb_sample_row *row, double *ipc);

/* What a counter that took turns would have counted if it had counted all the time. */
struct kb_report_count {
	double value;		/* extrapolated; NAN: it had no turn while the task ran */
	double error;		/* the true count is not further off, in 95 of 100 cases; INFINITY: there
				 * were too few turns */
	double part;		/* of the time, in which it was counted; 0 to 1 */
};

/* Does any counter take turns? */
bool kb_report_has_rotated(const struct kb_report *report);

/* Does counter @id take turns (kbarman record --rotate)? Its sums are then those of its turns. */
bool kb_report_is_rotated(const struct kb_report *report, uint32_t id);

/* The count of such a counter in the task of @row of report->counts; NULL: in all tasks. */
struct kb_report_count kb_report_rotated(const struct kb_report *report,
					 const struct kb_sample_row *row, uint32_t id);

/* A metric that the counters of a capture suffice for. */
struct kb_report_metric {
	const struct kb_metric *metric;
	char name[96];		/* "ipc"; with the kind of cores and the modifiers that all its counters
				 * have: "cpu_core/ipc:u" */
	uint32_t ids[KB_METRIC_EVENTS_MAX];	/* internal: of the counters, by place in the formula */
	unsigned int nr_ids;
	double slots;				/* internal: of a cycle */
};

/*
 * Fill at most @max of @metrics with those of @list, as of kb_metric_is_in(), for which @report has
 * counters. Returns their number. If kinds of cores were counted apart, each has its own.
 */
unsigned int kb_report_metrics(const struct kb_report *report, const char *list,
			       struct kb_report_metric *metrics, unsigned int max);

/*
 * @metric of the samples of @row of @table that have all its counters, and whose counters cover the
 * same time. NAN: it is a part of nothing there.
 */
double kb_report_metric_value(const struct kb_report *report, const struct kb_report_metric *metric,
			      const struct kb_sample_table *table, const struct kb_sample_row *row);

/* Does one of the counters of @metric take turns? */
bool kb_report_metric_is_rotated(const struct kb_report *report,
				 const struct kb_report_metric *metric);

/*
 * The same with its bounds: they differ from the value if counters take turns, which have such values
 * in report->counts only. Returns what kb_metric_evaluate() returns.
 */
int kb_report_metric_bounds(const struct kb_report *report, const struct kb_report_metric *metric,
			    const struct kb_sample_table *table, const struct kb_sample_row *row,
			    struct kb_metric_value *value);

/* The label of a node: its name, or its image in brackets if it has no name. Cut to @size bytes. */
void kb_calltree_label(const struct kb_calltree_node *node, char *label, size_t size);

/* What to do about stops for that reason: a clause in the imperative, never NULL. */
const char *kb_stop_advice(const char *reason);

#ifdef __cplusplus
}
#endif

#endif
