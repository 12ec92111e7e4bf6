/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What other sources report to source_maps.c. That source adds to the mmap table a row for every
 * executable mapping of every sampled thread. All functions but the first two do nothing while the
 * source does not run.
 */
#ifndef KBARMAN_SOURCE_MAPS_H
#define KBARMAN_SOURCE_MAPS_H

#include <linux/sched.h>
#include <linux/types.h>

/* Find out which new mappings can be seen when they are made. Context: task, at module init. */
void kbarman_maps_probe(void);

/* KBARMAN_FEATURE_MAPS*, as found at module init or at the source's last start. Context: any. */
u32 kbarman_maps_features(void);

/*
 * All threads to record are chosen. The mappings that they have by now are looked up, because
 * mappings made before they were chosen may have been missed. Context: task, session's lock held.
 */
void kbarman_maps_begin(void);

/*
 * The current thread is about to be sampled in user space, so it needs rows. Costs a bit test,
 * except for the thread's first sample. Call this before the record is made: rows that replace
 * those of a former owner of the thread id are stamped with the time of this call.
 * Context: overflow handler, any level up to NMI, preemption off.
 */
void kbarman_maps_sampled(void);

/*
 * @parent, the current task, has created @child, which has not run yet. A child process starts with
 * the mappings of its parent. Context: task, no sleeping.
 */
void kbarman_maps_fork(struct task_struct *parent, struct task_struct *child);

/* @task, the current task, has executed a new image. Context: task, no sleeping. */
void kbarman_maps_exec(struct task_struct *task);

/* Thread @task_id exits. Context: task, no sleeping. */
void kbarman_maps_exit(u32 task_id);

#endif /* KBARMAN_SOURCE_MAPS_H */
