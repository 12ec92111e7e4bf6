/* SPDX-License-Identifier: GPL-2.0-only */
/* The threads that a session records, if it records some processes only. */
#ifndef KBARMAN_CHOSEN_H
#define KBARMAN_CHOSEN_H

#include <linux/types.h>

struct kbarman_session;
struct kbarman_wanted;

/*
 * Make room for the choice of the processes that are @wanted, and choose. -ESRCH, with what is
 * refused in @wanted, or -ENOMEM; kbarman_chosen_forget() must be called after those, too. Context:
 * task, session's lock held.
 */
int kbarman_chosen_allocate(struct kbarman_session *session, struct kbarman_wanted *wanted);
void kbarman_chosen_forget(struct kbarman_session *session);

/*
 * Choose all current threads of the processes to record. Returns the place of the first process that
 * does not exist, else config.nr_pids; the others are chosen all the same. The threads of a process are chosen in the order of
 * their creation, and each bit is set with full ordering: task_inherit_filter() relies on both.
 */
u32 kbarman_chosen_choose(struct kbarman_session *session);

#endif /* KBARMAN_CHOSEN_H */
