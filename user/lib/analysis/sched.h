/* SPDX-License-Identifier: MIT */
/*
 * How tasks and CPUs spent their time, from the slices of a timeline: which tasks ran, which
 * waited and why, and which CPUs idled in which state.
 */
#ifndef KB_LIB_ANALYSIS_SCHED_H
#define KB_LIB_ANALYSIS_SCHED_H

#include <stdbool.h>
#include <stdint.h>

#include <kbarman/error.h>

#include "analysis/timeline.h"

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

	/* Internal: the open wait. */
	bool waits, waits_blocked, waits_asleep, seen;
	uint32_t mark;
	uint64_t mark_ticks;
	uint32_t last_core;
	int64_t waits_since;
	uint64_t last_seen;		/* ticks; the task is named by its name at that time */
};

struct kb_sched_state {
	uint64_t count;
	uint64_t ns, longest_ns;
};

/* Idle states: cpuidle index + 1; 0 is "unknown". */
#define KB_SCHED_STATES		256

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
	uint32_t mark;			/* from kb_sched_mark(); 0: none */
	uint64_t ticks;			/* from kb_sched_mark(), else 0 */
	bool blocked;			/* false: preempted */
	bool asleep;			/* blocked so that a signal could end it: most likely it
					 * had nothing to do */
	int64_t since;			/* ns */
	uint64_t ns;
};

struct kb_sched;

int kb_sched_create(struct kb_sched **out, uint32_t max_cores, struct kb_error *err);
void kb_sched_destroy(struct kb_sched *sched);

/*
 * Call it before any slice: count only slices on these CPUs, and waits that began there. @cpus
 * is a bit map as of kb_cpulist_parse(), or NULL for all; it must live as long as @sched.
 */
void kb_sched_only(struct kb_sched *sched, const uint64_t *cpus, unsigned int nr_words);

/* Add @slice of a timeline; @timestamp: ticks near its end. Returns 0 or -ENOMEM. */
int kb_sched_add(struct kb_sched *sched, const struct kb_slice *slice, uint64_t timestamp);

/* Call @take with each wait that ends from now on. There is one listener. */
void kb_sched_on_wait(struct kb_sched *sched,
		      void (*take)(void *context, const struct kb_wait *wait), void *context);

/* Store @mark and @ticks with the wait of @task_id that has just begun, if there is one. */
void kb_sched_mark(struct kb_sched *sched, uint32_t task_id, uint32_t mark, uint64_t ticks);

/* All tasks, longest running time first. Nothing can be added afterwards. */
const struct kb_sched_task *kb_sched_tasks(struct kb_sched *sched, uint32_t *nr);

/* The CPU with number @core, which must be below max_cores. */
const struct kb_sched_cpu *kb_sched_cpu(const struct kb_sched *sched, uint32_t core);

#endif
