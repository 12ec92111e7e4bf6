/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How many marks a user may write, with all descriptors that the user has opened. A mark beyond the
 * rate is lost in each session that would have recorded it, and is told there.
 */
#ifndef KBARMAN_MARKS_RATE_H
#define KBARMAN_MARKS_RATE_H

#include <linux/types.h>

struct cred;
struct kbarman_account;
struct kbarman_ring;
struct kbarman_session;

/*
 * The account of the user who opens a descriptor with @cred. NULL if there is no memory. Context:
 * task.
 */
struct kbarman_account *kbarman_account_open(const struct cred *cred);
void kbarman_account_close(struct kbarman_account *account);
void kbarman_accounts_exit(void);

/* Number of the user, from kbarman_user_of(). */
u32 kbarman_account_user(const struct kbarman_account *account);

/* Pay for @marks marks. False if the user's rate does not allow them. Context: task. */
bool kbarman_account_pay(struct kbarman_account *account, u32 marks);

/*
 * Count a mark as lost for @session. A lost mark costs other users nothing: the record of losses is
 * charged to the user who lost marks, together with one of that user's next marks.
 * Context: preemption off, @session records marks; also for the next two.
 */
void kbarman_account_lose(struct kbarman_account *account, const struct kbarman_session *session,
			  struct kbarman_ring *ring);

/* True if it is time for a record of losses, and @session has lost marks. */
bool kbarman_account_wants_to_tell(const struct kbarman_account *account,
				   const struct kbarman_session *session);

/* The next record in @ring is preceded by a record of the losses of @session, if there are any. */
void kbarman_account_tell(struct kbarman_account *account, const struct kbarman_session *session,
			  struct kbarman_ring *ring);

#endif /* KBARMAN_MARKS_RATE_H */
