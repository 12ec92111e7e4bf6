/* SPDX-License-Identifier: GPL-2.0-only */
/* The threads that a session records, if it records some processes only. */
#ifndef KBARMAN_CHOSEN_H
#define KBARMAN_CHOSEN_H

#include <linux/types.h>

struct kbarman_session;

/*
 * Make room for the choice of the processes config.nr_pids at @pids, and choose. -ESRCH, -ENOMEM;
 * kbarman_chosen_forget() must be called after those, too. Context: task, session's lock held.
 */
int kbarman_chosen_allocate(struct kbarman_session *session, const u32 *pids);
void kbarman_chosen_forget(struct kbarman_session *session);

/* Choose nobody. */
void kbarman_chosen_clear(struct kbarman_session *session);

/*
 * Choose all current threads of the processes to record. -ESRCH if one of the processes does not
 * exist; the others are chosen all the same. The threads of a process are chosen in the order of
 * their creation, and each bit is set with full ordering: task_inherit_filter() relies on both.
 */
int kbarman_chosen_choose(struct kbarman_session *session);

#endif /* KBARMAN_CHOSEN_H */
