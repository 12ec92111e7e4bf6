/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Who pays for what a task does: see shares.h for tables, source_marker.c for marks.
 */
#ifndef KBARMAN_USERS_H
#define KBARMAN_USERS_H

#include <linux/cred.h>
#include <linux/uidgid.h>
#include <linux/user_namespace.h>

#include "shares.h"

/*
 * The user by number: KBARMAN_USER_ROOT, or somebody else. Who has made a user namespace can
 * have many user ids in it, so those all are of whoever made the first one; root's own are
 * told apart by who is root in there. Context: any; @cred is held, or RCU.
 */
static inline u32 kbarman_user_of(const struct cred *cred)
{
	struct user_namespace *space = cred->user_ns;
	kuid_t user = cred->uid;

	if (space != &init_user_ns) {
		while (space->parent != &init_user_ns)
			space = space->parent;
		user = uid_eq(space->owner, GLOBAL_ROOT_UID) ? make_kuid(space, 0) : space->owner;
		/* A container that nobody is root in, or the machine's root is. */
		if (!uid_valid(user) || uid_eq(user, GLOBAL_ROOT_UID))
			user = cred->uid;
	}
	return __kuid_val(user);
}

#endif /* KBARMAN_USERS_H */
