/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What of a capture's tables a user may take. Tables are filled by what every task of the
 * machine does, so one user could leave no room for all others. A user gets at most three
 * quarters of what the others leave; tasks that the session does not record, all together,
 * a quarter. Root has no limit.
 *
 * Context: the caller's lock.
 */
#ifndef KBARMAN_SHARES_H
#define KBARMAN_SHARES_H

#include "table_env.h"

enum kbarman_resource {
	KBARMAN_SHARE_TASKS,	/* rows */
	KBARMAN_SHARE_MAPS,	/* rows */
	KBARMAN_SHARE_STRINGS,	/* units of the string table */
	KBARMAN_SHARE_SERIES,	/* rows */
	KBARMAN_SHARES,
};

/* Users as kbarman_user_of() tells them, and one that is none. */
#define KBARMAN_USER_ROOT	0U
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
 * The number of @user, to be given to the others. Users of whom there is no room for a
 * number share the last one.
 */
u8 kbarman_shares_payer(struct kbarman_shares *shares, u32 user);

/*
 * @payer takes @count of @what, if that may be. @low becomes true, and else stays as it is,
 * if it is time to look for what can be given back: it may not be, or half of what was left
 * when that was last asked is taken.
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

/* What could be given back has been: the next look is at half of what is left now. */
void kbarman_shares_looked(struct kbarman_shares *shares);

#endif /* KBARMAN_SHARES_H */
