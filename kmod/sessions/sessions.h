/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * sessions/: a session as a whole: configure, start, stop, look (calls.h), what it attaches to
 * (attach.h), its rings (rings.h), CPUs that come and go (cpus.h), suspend (suspend.h), which
 * session a descriptor sees (descriptor.h), the one that begins with the module (boot.h).
 *
 * Here: which sessions there are. Each has a slot from its first configure on. It loses the slot when
 * its owner has gone and nobody is left who may look at it, or when another session needs the slot
 * or the memory. Its maps stay.
 */
#ifndef KBARMAN_SESSIONS_H
#define KBARMAN_SESSIONS_H

#include <linux/poll.h>
#include <linux/types.h>

#include "session.h"

struct file;

void kbarman_sessions_init(void);

/*
 * A new session in a slot, with a reference for the caller, or an ERR_PTR: -EBUSY if there are as
 * many sessions as there may be, -ENOMEM. Nobody else sees it before kbarman_sessions_list(). The
 * caller ends it with kbarman_sessions_leave(). Context: task, no session's lock held.
 */
struct kbarman_session *kbarman_sessions_create(void);

/*
 * A session without a slot, in which another one is built, or NULL. Nobody else ever sees it.
 * kbarman_session_drop_spare() frees it and what is in it.
 */
struct kbarman_session *kbarman_session_spare(void);
void kbarman_session_drop_spare(struct kbarman_session *session);

void kbarman_session_put(struct kbarman_session *session);

/* @session has been configured and is the newest one from now on. Session's lock held. */
void kbarman_sessions_list(struct kbarman_session *session);

/*
 * The owner of @session is gone and has stopped it. Others may look at it: see above. Drops the
 * owner's reference.
 */
void kbarman_sessions_leave(struct kbarman_session *session);

/*
 * A descriptor that owns no session may look at those whose owner has gone. Context: task; the
 * first one waits for no session.
 */
void kbarman_sessions_watch(void);
void kbarman_sessions_unwatch(void);

/*
 * Drop the oldest session whose owner has gone and that nobody has chosen; with @user, only if it
 * is charged to this user, and only if it was configured with all of @flags. False if there is none. Context: task, no session's lock held.
 */
bool kbarman_sessions_give_way(const u32 *user, u32 flags);

/*
 * The session that was configured last, with a reference. If there is none, a session that nobody
 * configured, which is as good as any for the answer that there is none.
 */
struct kbarman_session *kbarman_sessions_newest(void);
/* Its capture with a reference, or NULL. Context: task, with or without mmap_lock. */
struct kbarman_capture *kbarman_sessions_newest_capture(void);

/* As many there may be. */
unsigned int kbarman_sessions_most(void);

/*
 * All sessions with a reference to each, the newest one first. Returns how many. Context: task, no
 * session's lock held.
 */
unsigned int kbarman_sessions_all(struct kbarman_session *found[KBARMAN_SLOTS]);

/*
 * The session whose number is @id, or NULL, with a reference. It is chosen: it stays until
 * kbarman_sessions_unchoose(), which drops the reference.
 */
struct kbarman_session *kbarman_sessions_choose(u64 id);
void kbarman_sessions_unchoose(struct kbarman_session *session);	/* NULL is allowed */

/* Register a poller for whatever session is the newest one or will be. */
void kbarman_sessions_poll(struct file *file, struct poll_table_struct *wait);

#endif /* KBARMAN_SESSIONS_H */
