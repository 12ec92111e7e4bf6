/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the other sources tell source_maps.c, which sees to it that the mmap table
 * has a row of every executable mapping of every thread that was sampled. All of it
 * does nothing while that source does not run.
 */
#ifndef KBARMAN_SOURCE_MAPS_H
#define KBARMAN_SOURCE_MAPS_H

#include <linux/sched.h>
#include <linux/types.h>

/* Find out whether new mappings can be seen as they are made. Context: task, at module init. */
void kbarman_maps_probe(void);

/* KBARMAN_FEATURE_MAPS*: as found then, or when the source last started. Context: any. */
u32 kbarman_maps_features(void);

/*
 * All who are recorded are chosen: what they have mapped by now is looked at. What they mapped
 * before that may not have been seen. Context: task.
 */
void kbarman_maps_begin(void);

/*
 * The current thread is about to be sampled in user space: its rows will be wanted.
 * A bit test, but for the first time. To be called before the record is made: rows
 * that replace those of a former owner of the thread id are stamped with this moment.
 * Context: overflow handler, any level up to NMI, preemption off.
 */
void kbarman_maps_sampled(void);

/*
 * @child was made by @parent, the current task, and has not run yet; a process of its
 * own starts with its parent's mappings. Context: task, no sleeping.
 */
void kbarman_maps_fork(struct task_struct *parent, struct task_struct *child);

/* @task, the current one, has a new image. Context: task, no sleeping. */
void kbarman_maps_exec(struct task_struct *task);

/* Thread @task_id is no more. Context: task, no sleeping. */
void kbarman_maps_exit(u32 task_id);

#endif /* KBARMAN_SOURCE_MAPS_H */
