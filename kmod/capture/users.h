/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The user who is charged for what a task does: see shares.h for tables, marks/marks.c for marks.
 */
#ifndef KBARMAN_USERS_H
#define KBARMAN_USERS_H

#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/uidgid.h>
#include <linux/user_namespace.h>

#include "capture/shares.h"

/* The machine's root: no limit of a user holds for who may go beyond those of the kernel, too. */
static inline bool kbarman_user_is_unlimited(const struct cred *cred)
{
	return cred->user_ns == &init_user_ns && cap_raised(cred->cap_effective, CAP_SYS_RESOURCE);
}

/*
 * The number of the user: KBARMAN_USER_ROOT, KBARMAN_USER_BARE_ROOT or a user id. A user can create
 * a user namespace and have many user ids in it. So all ids in a namespace are charged to the
 * creator of the outermost namespace around it, below the initial one. Namespaces that root created
 * are charged to the user id that is root inside. User id 0 alone makes nobody the machine's root: the root of a container
 * may have it, without a right to anything. Context: any; @cred is held, or RCU.
 */
static inline u32 kbarman_user_of(const struct cred *cred)
{
	struct user_namespace *space = cred->user_ns;
	kuid_t user = cred->uid;

	if (space != &init_user_ns) {
		while (space->parent != &init_user_ns)
			space = space->parent;
		user = uid_eq(space->owner, GLOBAL_ROOT_UID) ? make_kuid(space, 0) : space->owner;
		/* The namespace has no root, or its root is the machine's root. */
		if (!uid_valid(user) || uid_eq(user, GLOBAL_ROOT_UID))
			user = cred->uid;
	}
	if (uid_eq(user, GLOBAL_ROOT_UID) && !kbarman_user_is_unlimited(cred))
		return KBARMAN_USER_BARE_ROOT;
	return __kuid_val(user);
}

#endif /* KBARMAN_USERS_H */
