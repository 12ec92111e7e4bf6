// SPDX-License-Identifier: GPL-2.0-only
#include <linux/err.h>
#include <linux/fs.h>
#include <linux/mutex.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/spinlock.h>

#include "capture/capture.h"
#include "capture/storage.h"
#include "capture/users.h"
#include "session.h"
#include "sessions/boot.h"
#include "sessions/calls.h"
#include "sessions/descriptor.h"
#include "sessions/sessions.h"

struct kbarman_descriptor {
	struct mutex configuring;	/* one configure at a time makes the session */
	/*
	 * With a reference; set once, under `configuring`, and constant until the descriptor is
	 * closed. So a call on the descriptor needs no reference of its own.
	 */
	struct kbarman_session *own;

	spinlock_t lock;		/* protects those below */
	struct kbarman_session *chosen;	/* by kbarman_sessions_choose(); NULL = the newest one */
	u64 only;			/* the only configuration of it that is seen; 0: any */
	struct kbarman_observer observer;	/* changed under `configuring` */
};

/*
 * Waits for no session: Linux calls open() with the lock of all misc devices held, and other
 * devices must not wait for a session.
 */
struct kbarman_descriptor *kbarman_descriptor_open(void)
{
	struct kbarman_descriptor *descriptor = kzalloc(sizeof(*descriptor), GFP_KERNEL);

	if (!descriptor)
		return NULL;
	mutex_init(&descriptor->configuring);
	spin_lock_init(&descriptor->lock);
	kbarman_sessions_watch();
	return descriptor;
}

void kbarman_descriptor_close(struct kbarman_descriptor *descriptor, struct file *file)
{
	struct kbarman_session *own = descriptor->own;

	if (own) {
		kbarman_session_abandon(own, file);
		kbarman_sessions_leave(own);
	} else {
		kbarman_sessions_unchoose(descriptor->chosen);
		kbarman_sessions_unwatch();
	}
	kvfree(descriptor->observer.positions);
	kfree(descriptor);
}

struct kbarman_session *kbarman_descriptor_own(struct kbarman_descriptor *descriptor)
{
	/* The session is complete. Pairs with the release in descriptor_set_own(). */
	return smp_load_acquire(&descriptor->own);
}

struct kbarman_session *kbarman_descriptor_session(struct kbarman_descriptor *descriptor)
{
	struct kbarman_session *session = kbarman_descriptor_own(descriptor);

	if (session) {
		kref_get(&session->ref);
		return session;
	}
	spin_lock(&descriptor->lock);
	session = descriptor->chosen;
	if (session)
		kref_get(&session->ref);
	spin_unlock(&descriptor->lock);
	return session ?: kbarman_sessions_newest();
}

struct kbarman_capture *kbarman_descriptor_capture(struct kbarman_descriptor *descriptor)
{
	struct kbarman_session *session = kbarman_descriptor_own(descriptor);
	struct kbarman_capture *capture = NULL;
	u64 only;

	if (session)
		return kbarman_session_capture(session);
	/* Without a reference to the session: see kbarman_sessions_newest_capture(). */
	spin_lock(&descriptor->lock);
	session = descriptor->chosen;
	if (session)
		capture = kbarman_session_capture(session);
	only = descriptor->only;
	spin_unlock(&descriptor->lock);
	if (!session)
		return kbarman_sessions_newest_capture();
	if (!only || !capture || READ_ONCE(capture->session) == only)
		return capture;
	kbarman_capture_put(capture);
	return ERR_PTR(-ESTALE);
}

bool kbarman_descriptor_is_stale(struct kbarman_descriptor *descriptor,
				 const struct kbarman_session *session)
{
	bool stale;

	spin_lock(&descriptor->lock);
	stale = descriptor->only && session == descriptor->chosen &&
		READ_ONCE(session->id) != descriptor->only;
	spin_unlock(&descriptor->lock);
	return stale;
}

/* ---- choose ---- */

static void descriptor_set_chosen(struct kbarman_descriptor *descriptor,
				  struct kbarman_session *session, u64 only)
{
	struct kbarman_session *former;

	spin_lock(&descriptor->lock);
	former = descriptor->chosen;
	descriptor->chosen = session;
	descriptor->only = only;
	spin_unlock(&descriptor->lock);
	kbarman_sessions_unchoose(former);
}

int kbarman_descriptor_choose(struct kbarman_descriptor *descriptor, u64 id, bool only)
{
	struct kbarman_session *session = NULL;
	int error = mutex_lock_killable(&descriptor->configuring);

	if (error)
		return error;
	error = -EBUSY;
	if (descriptor->own)
		goto out;
	error = -ENOENT;
	if (id)
		session = kbarman_sessions_choose(id);
	if (id && !session)
		goto out;
	error = 0;
	descriptor_set_chosen(descriptor, session, only ? id : 0);
out:
	mutex_unlock(&descriptor->configuring);
	return error;
}

/* ---- a session of its own ---- */

static void descriptor_set_own(struct kbarman_descriptor *descriptor,
			       struct kbarman_session *session)
{
	smp_store_release(&descriptor->own, session);	/* pairs with kbarman_descriptor_own() */
	descriptor_set_chosen(descriptor, NULL, 0);
	kbarman_sessions_unwatch();
}

int kbarman_descriptor_adopt(struct kbarman_descriptor *descriptor, struct file *file, u64 id)
{
	struct kbarman_session *session;
	int error = mutex_lock_killable(&descriptor->configuring);

	if (error)
		return error;
	error = -EBUSY;
	if (descriptor->own)
		goto out;
	error = -ENOENT;
	session = kbarman_boot_take(id);
	if (!session)
		goto out;
	error = kbarman_session_adopt(session, file);
	if (error)
		kbarman_boot_put_back(session);
	else
		descriptor_set_own(descriptor, session);
out:
	mutex_unlock(&descriptor->configuring);
	return error;
}

/* The descriptor's first configure. One that fails leaves no session. */
static int descriptor_begin(struct kbarman_descriptor *descriptor, struct file *file,
			    struct kbarman_wanted *wanted)
{
	struct kbarman_session *session = kbarman_sessions_create();
	int error;

	if (IS_ERR(session))
		return PTR_ERR(session);
	error = kbarman_session_configure(session, file, wanted);
	if (error) {
		kbarman_sessions_leave(session);
		return error;
	}
	descriptor_set_own(descriptor, session);
	return 0;
}

/*
 * After @error, a session gives way whose slot or memory may help. False: there is none.
 */
static bool descriptor_makes_room(const struct kbarman_descriptor *descriptor,
				  const struct file *file, int error)
{
	u32 user = kbarman_user_of(file->f_cred);

	/* Whose allocations failed for this reason. */
	if (fatal_signal_pending(current))
		return false;
	if (error == -EDQUOT)
		return kbarman_sessions_give_way(&user, 0);
	if (error == -EADDRINUSE)
		return kbarman_sessions_give_way(NULL, KBARMAN_CONFIGURE_RESERVED);
	if (error == -ENOMEM || (error == -EBUSY && !descriptor->own))
		return kbarman_sessions_give_way(NULL, 0);
	return false;
}

int kbarman_descriptor_configure(struct kbarman_descriptor *descriptor, struct file *file,
				 struct kbarman_wanted *wanted)
{
	int error = mutex_lock_killable(&descriptor->configuring);

	if (error)
		return error;
	do {
		error = descriptor->own ?
			kbarman_session_configure(descriptor->own, file, wanted) :
			descriptor_begin(descriptor, file, wanted);
	} while (error && descriptor_makes_room(descriptor, file, error));
	mutex_unlock(&descriptor->configuring);
	return error;
}

/* ---- an observer's positions, and poll ---- */

int kbarman_descriptor_consume(struct kbarman_descriptor *descriptor, struct file *file,
			       struct kbarman_session *session, const struct kbarman_consume *consume)
{
	u64 *positions;
	int error;

	if (kbarman_descriptor_own(descriptor))
		return kbarman_session_consume(session, file, consume);
	error = mutex_lock_killable(&descriptor->configuring);
	if (error)
		return error;
	if (!descriptor->observer.positions) {
		positions = kvcalloc(nr_cpu_ids, sizeof(*positions), GFP_KERNEL_ACCOUNT);
		/* They are zeroes. Pairs with the acquire in kbarman_session_poll(). */
		smp_store_release(&descriptor->observer.positions, positions);
	}
	error = !descriptor->observer.positions ? -ENOMEM :
		kbarman_session_observe(session, &descriptor->observer, consume);
	mutex_unlock(&descriptor->configuring);
	return error;
}

__poll_t kbarman_descriptor_poll(struct kbarman_descriptor *descriptor, struct file *file,
				 struct poll_table_struct *wait)
{
	const struct kbarman_observer *observer = NULL;
	struct kbarman_session *session;
	__poll_t ready;

	/*
	 * epoll registers once, and the descriptor may use another session later. Registered before
	 * the session is looked up, so that a newer one wakes the poller.
	 */
	if (!kbarman_descriptor_own(descriptor)) {
		kbarman_sessions_poll(file, wait);
		wait = NULL;
		observer = &descriptor->observer;
	}
	session = kbarman_descriptor_session(descriptor);
	ready = kbarman_session_poll(session, file, wait, observer);
	if (kbarman_descriptor_is_stale(descriptor, session))
		ready = EPOLLERR;
	kbarman_session_put(session);
	return ready;
}
