/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the other sources tell source_maps.c, which sees to it that the mmap table
 * has a row of every executable mapping of every thread that was sampled.
 */
#ifndef KBARMAN_SOURCE_MAPS_H
#define KBARMAN_SOURCE_MAPS_H

#include <linux/sched.h>
#include <linux/types.h>

/*
 * The current task was sampled: its rows will be wanted. Costs a comparison unless
 * the CPU's last sample was of another thread.
 * Context: overflow handler, any level up to NMI.
 */
void kbarman_maps_sampled(void);

/* @child was made by @parent; a process of its own starts with its parent's maps. */
void kbarman_maps_fork(struct task_struct *parent, struct task_struct *child);

/* The current process starts a new image: what was mapped is gone. */
void kbarman_maps_exec(struct task_struct *task);

/* A thread exits. */
void kbarman_maps_exit(struct task_struct *task);

#endif /* KBARMAN_SOURCE_MAPS_H */
