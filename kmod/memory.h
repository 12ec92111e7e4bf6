/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How much memory the captures of each user take. A capture is charged to the user who configured
 * it, until its last map is gone.
 */
#ifndef KBARMAN_MEMORY_H
#define KBARMAN_MEMORY_H

#include <linux/types.h>

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
