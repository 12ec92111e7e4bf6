/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How much of a capture's tables each user may take. Every task of the machine adds rows, so
 * without limits one user could leave no room for the others. A user gets at most three quarters
 * of what the others leave. All tasks that the session does not record get a quarter together.
 * Root has no limit: that is user id 0 with CAP_SYS_RESOURCE (users.h).
 *
 * Context: the caller's lock.
 */
#ifndef KBARMAN_SHARES_H
#define KBARMAN_SHARES_H

#include "capture/table_env.h"

enum kbarman_resource {
	KBARMAN_SHARE_TASKS,	/* rows */
	KBARMAN_SHARE_MAPS,	/* rows */
	KBARMAN_SHARE_STRINGS,	/* units of the string table */
	KBARMAN_SHARE_SERIES,	/* rows */
	KBARMAN_SHARES,
};

/* Users as kbarman_user_of() tells them, and a number that is no user's. */
#define KBARMAN_USER_ROOT	0U
#define KBARMAN_USER_BARE_ROOT	(~1U)	/* user id 0 without the right to be unlimited */
#define KBARMAN_USER_UNWANTED	(~0U)	/* tasks that are not recorded */

#define KBARMAN_PAYERS		64

struct kbarman_shares {
	u32 size[KBARMAN_SHARES];	/* of the tables */
	u32 used[KBARMAN_SHARES];	/* by all */
	struct kbarman_payer {
		u32 user;
		u32 used[KBARMAN_SHARES];
		u32 alarm[KBARMAN_SHARES];	/* see kbarman_shares_take() */
	} payers[KBARMAN_PAYERS];
};

void kbarman_shares_init(struct kbarman_shares *shares, const u32 size[KBARMAN_SHARES]);

/*
 * The number of @user, which the other functions want. If all numbers are in use, @user gets the
 * last one, and shares it.
 */
u8 kbarman_shares_payer(struct kbarman_shares *shares, u32 user);

/*
 * @payer takes @count of @what. False: the limit does not allow it. @low becomes true if it is
 * time to look for what can be given back: the limit did not allow it, or @payer has taken half
 * of what was left at the last look. Else @low stays as it is.
 */
bool kbarman_shares_take(struct kbarman_shares *shares, u8 payer, enum kbarman_resource what,
			 u32 count, bool *low);
void kbarman_shares_give(struct kbarman_shares *shares, u8 payer, enum kbarman_resource what,
			 u32 count);

/* What @payer may have of @what in all, with what the others have now. */
u32 kbarman_shares_limit(const struct kbarman_shares *shares, u8 payer, enum kbarman_resource what);

/*
 * @count rings need @needs[0], @needs[@stride], … of something, and @budget is there. Returns
 * how much each ring may keep: a ring that needs no more than that keeps all, the others keep
 * the same. ~0: all of them keep all.
 */
u32 kbarman_shares_level(const u32 *needs, size_t stride, u32 count, u64 budget);

/* A look is over. The next one is due when half of what is left now is taken. */
void kbarman_shares_looked(struct kbarman_shares *shares);

#endif /* KBARMAN_SHARES_H */
