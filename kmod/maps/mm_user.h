/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Looking into the memory of others without a reference to it (mm_users): a reference that outlives
 * the task would keep the task's mappings, and so files, alive, and umount would fail.
 */
#ifndef KBARMAN_MM_USER_H
#define KBARMAN_MM_USER_H

#include <linux/types.h>

struct mm_struct;
struct task_struct;

/*
 * A task that uses @mm, maybe of the process of @task_id, or NULL if there is none. Until
 * kbarman_mm_unlock_user() it keeps the memory: exit and exec take its alloc_lock before they give
 * memory up. So hold it for a short time.
 * Context: task; @mm is held (mm_count).
 */
struct task_struct *kbarman_mm_lock_user(struct mm_struct *mm, u32 task_id);
void kbarman_mm_unlock_user(struct task_struct *task);

#endif /* KBARMAN_MM_USER_H */
