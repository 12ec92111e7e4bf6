/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How much memory the captures of each user take. A capture is charged to the user who configured
 * it, until its last map is gone.
 */
#ifndef KBARMAN_MEMORY_H
#define KBARMAN_MEMORY_H

#include <linux/types.h>

/*
 * Memory for captures is promised before it is allocated, so that two sessions together do not take
 * more than there is: -ENOMEM if all that is promised is more than three quarters of what the
 * machine has left. kbarman_memory_keep() ends the promise of @bytes: they are allocated, or not
 * wanted any more. Context: task.
 */
int kbarman_memory_promise(u64 bytes);
void kbarman_memory_keep(u64 bytes);

/*
 * @bytes of zeroes, or NULL. Their pages are of @node (NUMA_NO_NODE: of any), may be mapped, and
 * are charged to the memory cgroup of the caller, if that is a program, from Linux 5.11 on. No task is
 * killed for them: neither if the machine has not enough, nor if the cgroup's limit is reached. A
 * caller that is being killed gets NULL. Context: task that may sleep.
 */
void *kbarman_memory_pages(u64 bytes, int node);
void kbarman_memory_free(void *memory);	/* NULL is allowed */

/*
 * Charge @bytes, more than 0, to @user: a number from kbarman_user_of(). -EDQUOT if the user would
 * have more than one user may, or -ENOMEM. Context: task.
 */
int kbarman_memory_take(u32 user, u64 bytes);
void kbarman_memory_give(u32 user, u64 bytes);

/* Bytes that @user has, and that a user may have. Context: task. */
u64 kbarman_memory_of(u32 user);
u64 kbarman_memory_limit(void);

#endif /* KBARMAN_MEMORY_H */
