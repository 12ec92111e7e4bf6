/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Who holds the lock of a program that the current task waits for: what the lock's own word says, in the
 * program's memory. Nothing has checked it. Context: as object.h.
 */
#ifndef KBARMAN_HOLDER_H
#define KBARMAN_HOLDER_H

#include <linux/mutex.h>	/* 6.12: <linux/futex.h> needs this */
#include <linux/futex.h>
#include <linux/pid.h>
#include <linux/sched.h>

#include "stacks/user_words.h"

#ifndef FUTEX_LOCK_PI2
#define FUTEX_LOCK_PI2	13	/* Linux 5.14 */
#endif

/* glibc's mutex, of all architectures. What is none has other numbers there. */
struct kbarman_glibc_mutex {
	u32 lock, count, owner, users, kind;
};

#define KBARMAN_GLIBC_CONTENDED	2	/* what a lock has that somebody waits for */
#define KBARMAN_GLIBC_KINDS	0x3ff
#define KBARMAN_GLIBC_USERS	0xffff	/* more have never seen one lock */

/* Whether the call waits for a lock that may be glibc's. */
static __always_inline bool kbarman_waits_for_mutex(unsigned int operation, unsigned int value)
{
	return (operation & FUTEX_CMD_MASK) == FUTEX_WAIT && value == KBARMAN_GLIBC_CONTENDED;
}

/* Whether it waits for a lock with priority inheritance. */
static __always_inline bool kbarman_waits_for_pi(unsigned int operation)
{
	unsigned int waits = operation & FUTEX_CMD_MASK;

	return waits == FUTEX_LOCK_PI || waits == FUTEX_LOCK_PI2;
}

/* The thread that glibc's mutex at @address names, by its number in the task's PID namespace, or 0. */
static __always_inline u32 kbarman_mutex_owner(unsigned long address)
{
	const struct kbarman_glibc_mutex __user *from = (const struct kbarman_glibc_mutex __user *)address;
	u32 owner = 0, users = 0, kind = 0;

	kbarman_user_faults_off();
	if (kbarman_user_access_begin(from, sizeof(*from))) {
		unsafe_get_user(kind, &from->kind, failed);
		unsafe_get_user(users, &from->users, failed);
		unsafe_get_user(owner, &from->owner, failed);
failed:
		user_access_end();
	}
	kbarman_user_faults_on();
	return kind & ~KBARMAN_GLIBC_KINDS || users - 1 >= KBARMAN_GLIBC_USERS ? 0 : owner;
}

/* Whether numbers of threads are the same for the task as for the module. */
static __always_inline bool kbarman_in_first_pid_namespace(void)
{
	return !task_pid(current)->level;
}

#endif /* KBARMAN_HOLDER_H */
