/* SPDX-License-Identifier: MIT */
/*
 * How tasks and CPUs spent their time, from the slices of a timeline: who ran, who
 * waited and why, which CPU idled and how deep.
 */
#ifndef KB_LIB_ANALYSIS_SCHED_H
#define KB_LIB_ANALYSIS_SCHED_H

#include <stdbool.h>
#include <stdint.h>

#include <kbarman/error.h>

#include "analysis/timeline.h"

struct kb_sched_task {
	uint64_t key;			/* the task id */
	uint64_t runs;			/* times that a switch put it onto a CPU */
	uint64_t preempted, blocked;	/* times that one took it off, and why */
	uint64_t run_ns;
	uint64_t preempted_ns;		/* from being preempted until it ran again */
	uint64_t blocked_ns;		/* the same, blocked */
	uint64_t longest_ns;		/* the longest of these waits, ... */
	int64_t longest_at;		/* ... which began then, ns, ... */
	bool longest_blocked, longest_asleep;	/* ... and why */
	uint32_t migrations;		/* times that it ran on another CPU than before */

	/* Not for others: the open wait. */
	bool waits, waits_blocked, waits_asleep, seen;
	uint32_t mark;
	uint64_t mark_ticks;
	uint32_t last_core;
	int64_t waits_since;
	uint64_t last_seen;		/* ticks, to name it by */
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
	uint64_t busy_ns;		/* tasks other than idle */
	uint64_t awake_ns;		/* the idle task, outside of a halt */
	uint64_t halted_ns;
	uint64_t lost_ns;		/* nobody knows */
	uint64_t lost;			/* records, as counted at the gaps */
	struct kb_sched_state *states;	/* KB_SCHED_STATES, NULL: never halted */
};

/* A wait that is over. */
struct kb_wait {
	uint32_t task_id;
	uint32_t core;			/* where it began */
	uint32_t mark;			/* kb_sched_mark()'s, 0: none */
	uint64_t ticks;			/* kb_sched_mark()'s, else 0 */
	bool blocked;			/* else preempted */
	bool asleep;			/* blocked, and a signal could have ended it: it had
					 * nothing to do, as far as the kernel knows */
	int64_t since;			/* ns */
	uint64_t ns;
};

struct kb_sched;

int kb_sched_create(struct kb_sched **out, uint32_t max_cores, struct kb_error *err);
void kb_sched_destroy(struct kb_sched *sched);

/*
 * From now on, before any slice, count only what was on these CPUs (NULL: all; a map as of
 * kb_cpulist_parse()), and waits that began there. @cpus must stay.
 */
void kb_sched_only(struct kb_sched *sched, const uint64_t *cpus, unsigned int nr_words);

/* @slice as the timeline gives it; @timestamp: ticks of about its end. 0 or -ENOMEM. */
int kb_sched_add(struct kb_sched *sched, const struct kb_slice *slice, uint64_t timestamp);

/* Call @take with each wait that is over from now on; one listener. */
void kb_sched_on_wait(struct kb_sched *sched,
		      void (*take)(void *context, const struct kb_wait *wait), void *context);

/* Remember @mark and @ticks with the wait of @task_id that was just begun, if there is one. */
void kb_sched_mark(struct kb_sched *sched, uint32_t task_id, uint32_t mark, uint64_t ticks);

/* All tasks, those that ran longest first. Nothing can be added afterwards. */
const struct kb_sched_task *kb_sched_tasks(struct kb_sched *sched, uint32_t *nr);

/* By core; below max_cores. */
const struct kb_sched_cpu *kb_sched_cpu(const struct kb_sched *sched, uint32_t core);

#endif
