/* SPDX-License-Identifier: MIT */
/*
 * How tasks and CPUs spent their time, from the slices of a timeline: which tasks ran, which
 * waited and why, and which CPUs idled in which state.
 */
#ifndef KB_LIB_ANALYSIS_TIME_SCHED_H
#define KB_LIB_ANALYSIS_TIME_SCHED_H

#include <stdbool.h>
#include <stdint.h>

#include <kbarman/report.h>

struct kb_sched;

int kb_sched_create(struct kb_sched **out, uint32_t max_cores, struct kb_error *err);
void kb_sched_destroy(struct kb_sched *sched);

/*
 * Call it before any slice: count only what is on CPUs that are wanted, waits by where they began,
 * and of that the parts in the time that is wanted. Tasks count while they are wanted; CPUs have all
 * of them. @wanted must live as long as @sched.
 */
struct kb_wanted;
void kb_sched_filter(struct kb_sched *sched, const struct kb_wanted *wanted);

/* Add @slice of a timeline; @timestamp: ticks near its end. Returns 0 or -ENOMEM. */
int kb_sched_add(struct kb_sched *sched, const struct kb_slice *slice, uint64_t timestamp);

/* Call @take with each wait that ends from now on. There is one listener. */
void kb_sched_on_wait(struct kb_sched *sched,
		      void (*take)(void *context, const struct kb_wait *wait), void *context);

/* Store @mark and @ticks with the wait of @task_id that has just begun, if there is one. */
void kb_sched_mark(struct kb_sched *sched, uint32_t task_id, uint32_t mark, uint64_t ticks);

/* @waker ends the wait of @task_id, if it waits, at @ticks. The first one counts. */
void kb_sched_woken(struct kb_sched *sched, uint32_t task_id, const struct kb_origin *waker,
		    uint64_t ticks);

/* All tasks, longest running time first. Nothing can be added afterwards. */
const struct kb_sched_task *kb_sched_tasks(struct kb_sched *sched, uint32_t *nr);

/* The CPU with number @core, which must be below max_cores. */
const struct kb_sched_cpu *kb_sched_cpu(const struct kb_sched *sched, uint32_t core);

#endif
