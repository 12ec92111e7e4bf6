// SPDX-License-Identifier: GPL-2.0-only
#include <linux/atomic.h>
#include <linux/cred.h>
#include <linux/ktime.h>
#include <linux/list.h>
#include <linux/minmax.h>
#include <linux/slab.h>
#include <linux/spinlock.h>

#include "capture/users.h"
#include "marks/rate.h"
#include "ring/clock.h"
#include "session.h"
#include "uapi/kbarman.h"

#define NS_A_MARK	(NSEC_PER_SEC / KBARMAN_MARK_RATE)
#define BURST_NS	((s64)KBARMAN_MARK_BURST * NS_A_MARK)
#define TELL_NS		((s64)NSEC_PER_SEC / 10)	/* from one record of losses to the next */

/* What a user has lost in the session of one slot. */
struct losses {
	u32 recording;		/* the recording to which `untold` belongs */
	atomic_t untold;	/* lost marks that no ring has a record of yet */
	u64 since;		/* timestamp of the first of them */
};

/* What a user has written, with all descriptors. */
struct kbarman_account {
	struct list_head list;	/* in accounts */
	u32 user;
	unsigned int markers;	/* open descriptors. Protected by accounts_lock */
	atomic64_t paid;	/* time in ns of ktime_get_ns() up to which the user's rate is
				 * used */
	s64 told;		/* ns of ktime_get_ns() when a ring last got a record of losses */
	struct losses losses[KBARMAN_SLOTS];
};

/*
 * An account without open descriptors stays until `paid` has passed: closing and opening again does
 * not give a user more marks.
 */
static LIST_HEAD(accounts);
static DEFINE_SPINLOCK(accounts_lock);

static bool account_is_over(const struct kbarman_account *account)
{
	return !account->markers && atomic64_read(&account->paid) <= ktime_get_ns();
}

/*
 * The account of @user. If there is none, @spare becomes the account. Accounts that are over are
 * moved to @old, for the caller to free.
 */
static struct kbarman_account *account_find(u32 user, struct kbarman_account *spare,
					    struct list_head *old)
{
	struct kbarman_account *account, *next, *found = NULL;

	lockdep_assert_held(&accounts_lock);
	list_for_each_entry_safe(account, next, &accounts, list) {
		if (account->user == user)
			found = account;
		else if (account_is_over(account))
			list_move(&account->list, old);
	}
	if (!found) {
		spare->user = user;
		list_add(&spare->list, &accounts);
		found = spare;
	}
	return found;
}

static void accounts_free(struct list_head *list)
{
	struct kbarman_account *account, *next;

	list_for_each_entry_safe(account, next, list, list)
		kfree(account);
}

struct kbarman_account *kbarman_account_open(const struct cred *cred)
{
	struct kbarman_account *spare = kzalloc(sizeof(*spare), GFP_KERNEL_ACCOUNT), *account;
	u32 user = kbarman_user_of(cred);
	LIST_HEAD(old);

	if (!spare)
		return NULL;
	spin_lock(&accounts_lock);
	account = account_find(user, spare, &old);
	account->markers++;
	spin_unlock(&accounts_lock);
	if (account != spare)
		kfree(spare);
	accounts_free(&old);
	return account;
}

void kbarman_account_close(struct kbarman_account *account)
{
	spin_lock(&accounts_lock);
	account->markers--;
	spin_unlock(&accounts_lock);
}

void kbarman_accounts_exit(void)
{
	accounts_free(&accounts);
}

u32 kbarman_account_user(const struct kbarman_account *account)
{
	return account->user;
}

/*
 * A mark costs NS_A_MARK ns of the user's time. A user can spend at most BURST_NS in advance.
 */
bool kbarman_account_pay(struct kbarman_account *account, u32 marks)
{
	s64 now = ktime_get_ns();
	s64 paid = atomic64_read(&account->paid), then;

	do {
		then = max(paid, now) + (s64)marks * NS_A_MARK;
		if (then - now > BURST_NS)
			return false;
	} while (!atomic64_try_cmpxchg(&account->paid, &paid, then));
	return true;
}

/* ---- losses ---- */

/* Those of a former recording in the same slot are no losses of @session. */
static bool losses_are_of(const struct losses *losses, const struct kbarman_session *session)
{
	return READ_ONCE(losses->recording) == READ_ONCE(session->marks_recording);
}

void kbarman_account_lose(struct kbarman_account *account, const struct kbarman_session *session,
			  struct kbarman_ring *ring)
{
	struct losses *losses = &account->losses[session->slot];

	if (!kbarman_ring_lose(ring, KBARMAN_LOST_RATE))
		return;
	if (!losses_are_of(losses, session)) {
		WRITE_ONCE(losses->recording, READ_ONCE(session->marks_recording));
		atomic_set(&losses->untold, 0);
	}
	if (!atomic_read(&losses->untold))
		WRITE_ONCE(losses->since, kbarman_clock());
	atomic_inc(&losses->untold);
}

bool kbarman_account_wants_to_tell(const struct kbarman_account *account,
				   const struct kbarman_session *session)
{
	const struct losses *losses = &account->losses[session->slot];

	return atomic_read(&losses->untold) && losses_are_of(losses, session) &&
	       (s64)ktime_get_ns() - READ_ONCE(account->told) > TELL_NS;
}

void kbarman_account_tell(struct kbarman_account *account, const struct kbarman_session *session,
			  struct kbarman_ring *ring)
{
	struct losses *losses = &account->losses[session->slot];
	u64 since = READ_ONCE(losses->since);
	int untold = losses_are_of(losses, session) ? atomic_xchg(&losses->untold, 0) : 0;

	if (!untold)
		return;
	WRITE_ONCE(account->told, ktime_get_ns());
	kbarman_ring_owe(ring, KBARMAN_LOST_RATE, untold, since);
}
