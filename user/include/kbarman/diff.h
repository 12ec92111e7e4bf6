/* SPDX-License-Identifier: MIT */
/*
 * What differs between two groups of captures, A and B, and how sure that is: CPU time, waits,
 * delays, counters, idling and interrupts.
 *
 *	struct kb_diff_options options = { .size = sizeof(options) };
 *	const struct kb_diff *diff;
 *	struct kb_differ *differ;
 *
 *	if (kb_differ_create(&differ, &options, &err) || kb_differ_add(differ, 0, before, &err) < 0 ||
 *	    kb_differ_add(differ, 1, after, &err) < 0 || kb_differ_judge(differ, &diff, &err))
 *		errx(1, "%s", kb_error_text(&err));
 *	for (uint32_t i = 0; i < diff->nr; i++)
 *		if (diff->rows[i].certain)
 *			printf("%+.1f %%  %s\n", 100 * diff->rows[i].change, diff->rows[i].name);
 *	kb_differ_destroy(differ);
 *
 * A value is that of a whole run, or with options.per_second that of a second of it. With several
 * captures a side the error comes from how much the captures of a side differ among each other
 * (Welch's t). With one capture a side it comes from how much 64 slices of the one run differ from
 * those of the other at the same part of its time (a bootstrap of blocks), which knows nothing of
 * how much two runs differ. With one capture on one side only,
 * both sides are taken to vary as the other one does.
 *
 * Rows are compared if they have a share of at least options.least of their table; if a row that is
 * not listed changes its share, that shows in those that are. All rows that are compared are
 * corrected together (Benjamini-Hochberg): half of the allowance goes to the totals, half to all
 * others, of which those with a larger share of their table get more.
 *
 * One thread at a time may use a differ. Later versions of the library may add members at the ends
 * of the structs here, which the library allocates, and kinds at the ends of the enums.
 */
#ifndef KBARMAN_DIFF_H
#define KBARMAN_DIFF_H

#include <kbarman/filter.h>

#ifdef __cplusplus
extern "C" {
#endif

struct kb_differ;

/* What to compare, and how. All zero behind `size` is the default. */
struct kb_diff_options {
	size_t size;		/* of this struct, as the caller knows it: sizeof() */
	double level;		/* of confidence, above 0 and below 1; 0: 0.95 */
	double least;		/* share below which a row is not compared; 0: 0.005; negative: all */
	bool per_second;	/* divide by the length of the recording */
	/*
	 * What to compare of each capture: what happened on these CPUs, in these tasks, in that part
	 * of its time. Waits and delays are of the time in which they began. NULL: all. What it
	 * refers to must live as long as the differ.
	 */
	const struct kb_filter *filter;
};

/* What is compared. */
enum kb_diff_measure {
	KB_DIFF_TIME,		/* length of the recording, ns */
	KB_DIFF_CPU,		/* time on a CPU, ns */
	KB_DIFF_WAIT,		/* time off the CPU until it ran again, ns */
	KB_DIFF_LATENCY,	/* mean time from when a task could run until it ran, ns */
	KB_DIFF_LATENCY_P99,	/* 99 % of these times are not above it, ns */
	KB_DIFF_COUNTER,	/* increase of a counter */
	KB_DIFF_IPC,		/* instructions per cycle */
	KB_DIFF_IDLE,		/* time that CPUs halted, ns */
	KB_DIFF_IRQ,		/* time of interrupts and softirqs, ns */
};

#define KB_DIFF_MEASURES	9

/* What its rows are. */
enum kb_diff_by {
	KB_DIFF_TOTAL,
	KB_DIFF_TASK,		/* tasks of one name */
	KB_DIFF_SYMBOL,		/* functions of one name and image */
	KB_DIFF_CHAIN,		/* whole call chains below the name of a task */
	KB_DIFF_STATE,		/* idle states */
	KB_DIFF_HANDLER,	/* handlers of interrupts, softirqs, IPIs */
	KB_DIFF_OBJECT,		/* "TASK: OBJECT": what tasks of that name waited for, by what is the same in
				 * another run; if all captures say it */
};

#define KB_DIFF_BYS		7

/* The node of no chain: the root of the tree. */
#define KB_DIFF_NO_NODE		0U

/* One thing that is compared. Strings live as long as the differ. */
struct kb_diff_row {
	enum kb_diff_measure measure;
	enum kb_diff_by by;
	const char *counter;	/* of KB_DIFF_COUNTER; else "" */
	const char *name;	/* of a task, a function, …; of a chain: its innermost function; ""
				 * where unknown, and of totals */
	const char *image;	/* base name of the file of a function; else "" */
	bool kernel;		/* the function is of the kernel */
	uint32_t node;		/* of a chain, in kb_diff.nodes */
	double a, b;		/* mean values of the captures of each side */
	double change;		/* (b - a) / a, so 0.01 is 1 % more; infinite: a is 0 */
	double low, high;	/* in this interval is the true change, with options.level; -1 and
				 * infinite: nothing is known */
	double p;		/* the probability of such a difference if there is none */
	double q;		/* the same, corrected for all rows that were compared */
	bool compared;		/* else it is too small: p and q are 1 */
	bool certain;		/* q <= 1 - options.level; of one capture a side this is only what
				 * the course of the two runs does not explain */
	double error;		/* standard error of b - a; infinite: not known */
	double freedom;		/* its degrees of freedom */
	double variances[2], freedoms[2];	/* internal: of a and b */
	double covariance, blocks;	/* internal: of one capture on each side */
	bool one_variance;		/* internal: a and b have it from one side */
	bool one_each;			/* internal */
};

/* A tree of call chains, as that of struct kb_call_tree of kbarman/report.h, of both sides. */
struct kb_diff_node {
	const char *name;	/* of a task or a function; "" where unknown */
	const char *image;	/* base name; "" for tasks */
	bool kernel;
	uint32_t parent;	/* the root is node 0 and its own parent */
	uint32_t depth;		/* the root has 0, tasks 1 */
	double cpu[2], wait[2];	/* mean ns of each side, of the node itself */
	double cpu_total[2], wait_total[2];	/* the same with all nodes below it */
	uint32_t cpu_row, wait_row;	/* of the chain that ends here, + 1; 0: none */
};

/* Why the groups, or captures of one group, can't be compared, or only with care. */
struct kb_diff_doubt {
	bool grave;		/* the numbers mean different things */
	const char *sentence;
};

/* One side. */
struct kb_diff_side {
	uint32_t captures;
	uint64_t samples, switches, records, lost;	/* of all of them together */
	double seconds;		/* mean length */
	bool damaged;		/* some capture is; its undamaged part is compared */
};

/* The results. */
struct kb_diff {
	struct kb_diff_side sides[2];
	const struct kb_diff_row *rows;	/* by measure, counter and kind; of these first those that
					 * are certain, the largest certain difference first */
	uint32_t nr;
	uint32_t nr_compared, nr_certain;
	const struct kb_diff_node *nodes;	/* parents before children */
	const uint32_t *order;		/* their numbers, depth first, siblings by name */
	uint32_t nr_nodes;
	const struct kb_diff_doubt *doubts;	/* the grave ones first */
	uint32_t nr_doubts;
	bool one_each;		/* one capture on each side */
	bool has_objects;	/* all captures say what tasks waited for */
};

/* Returns 0, -EINVAL or -ENOMEM. @options may be NULL. */
int kb_differ_create(struct kb_differ **out, const struct kb_diff_options *options,
		     struct kb_error *err);

/* Free @differ, which may be NULL, and all its results. */
void kb_differ_destroy(struct kb_differ *differ);

/*
 * Read all of @trace as a capture of side 0 (A) or 1 (B); it may be closed behind that. A capture
 * that lacks records is read twice. Returns 0; 1 if the capture is damaged: @err says where; or a
 * negative errno: those of kb_trace_rewind() and of kb_trace_symbolizer(), -EINVAL, -ENOMEM, and
 * -EEXIST for a copy of another capture of the side.
 */
int kb_differ_add(struct kb_differ *differ, unsigned int side, struct kb_trace *trace,
		  struct kb_error *err);

/*
 * Compare what was added; nothing can be added afterwards. Returns 0; -EINVAL if a side has no
 * capture; or -ENOMEM. *@diff lives as long as @differ.
 */
int kb_differ_judge(struct kb_differ *differ, const struct kb_diff **diff, struct kb_error *err);

/*
 * The probability of such a value of @row in B, or of one that is further away from A, if in truth B
 * is (1 + @limit) times A: @limit 0.02 asks for a rise by more than 2 %, and @falls with -0.02 for a
 * fall by more than that. Not corrected: it is for one row that was chosen before.
 */
double kb_diff_exceeds(const struct kb_diff_row *row, double limit, bool falls);

/* Words, such as "cpu" and "task": the keys of the JSON. Never NULL. */
const char *kb_diff_measure_name(enum kb_diff_measure measure);
const char *kb_diff_by_name(enum kb_diff_by by);

#ifdef __cplusplus
}
#endif

#endif
