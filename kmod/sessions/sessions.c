// SPDX-License-Identifier: GPL-2.0-only
#include <linux/cpumask.h>
#include <linux/err.h>
#include <linux/kref.h>
#include <linux/minmax.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/percpu.h>
#include <linux/pid.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <linux/spinlock.h>

#include "capture/capture.h"
#include "capture/storage.h"
#include "ring/wake.h"
#include "session.h"
#include "sessions/calls.h"
#include "sessions/chosen.h"
#include "sessions/cpus.h"
#include "sessions/rings.h"
#include "sessions/sessions.h"
#include "stacks/callchain.h"

static unsigned int sessions_most = 8;
module_param_named(sessions, sessions_most, uint, 0644);
MODULE_PARM_DESC(sessions, "Most sessions at a time (1 to 32, default 8)");

/*
 * Pollers stay with the slot: epoll keeps a poller registered for as long as its descriptor is
 * open, and the session may go before.
 */
struct slot {
	struct kbarman_session *session;	/* with a reference */
	struct kbarman_wake wake;
};

/* Protects all below, and what is so in a session. Innermost, but for capture_lock. */
static DEFINE_SPINLOCK(sessions_lock);
static struct slot slots[KBARMAN_SLOTS];
static unsigned int sessions_watchers;	/* descriptors that own no session */
static u64 sessions_configured;		/* number of configurations so far */

/* What is seen while there is no session: never configured, never freed. */
static struct kbarman_session no_session;
static struct kbarman_wake no_wake;

/* ---- what a session owns from its configure on ---- */

struct kbarman_capture *kbarman_session_capture(struct kbarman_session *session)
{
	struct kbarman_capture *capture;

	spin_lock(&session->capture_lock);
	capture = session->capture;
	if (capture)
		kbarman_capture_get(capture);
	spin_unlock(&session->capture_lock);
	return capture;
}

void kbarman_session_set_capture(struct kbarman_session *session, struct kbarman_capture *capture)
{
	struct kbarman_capture *former;

	spin_lock(&session->capture_lock);
	former = session->capture;
	session->capture = capture;
	spin_unlock(&session->capture_lock);
	kbarman_capture_put(former);
}

/* Forget what it recorded. */
static void session_discard(struct kbarman_session *session)
{
	lockdep_assert_held(&session->lock);
	kbarman_rings_forget(session);
	kbarman_callchain_free(session);
	kbarman_session_set_capture(session, NULL);
	kbarman_chosen_forget(session);
	kvfree(session->events);
	session->events = NULL;
}

/* ---- the life of a session ---- */

void kbarman_session_drop_spare(struct kbarman_session *session)
{
	if (session->each) {
		mutex_lock(&session->lock);
		session_discard(session);
		mutex_unlock(&session->lock);
	}
	put_pid(session->who.pid);
	free_cpumask_var(session->gone);
	free_cpumask_var(session->recording);
	free_cpumask_var(session->cpus);
	free_percpu(session->each);
	kfree(session);
}

static void session_free(struct kref *ref)
{
	struct kbarman_session *session = container_of(ref, struct kbarman_session, ref);

	/* No list has the session any more, but somebody may have found it there. */
	synchronize_rcu();
	cancel_work_sync(&session->cpus_changed);
	kbarman_session_drop_spare(session);
}

void kbarman_session_put(struct kbarman_session *session)
{
	if (session)
		kref_put(&session->ref, session_free);
}

static void session_init(struct kbarman_session *session)
{
	kref_init(&session->ref);
	mutex_init(&session->lock);
	spin_lock_init(&session->capture_lock);
	kbarman_cpus_init_session(session);
}

static bool session_allocate_cpus(struct kbarman_session *session)
{
	int cpu;

	session->each = alloc_percpu_gfp(struct kbarman_cpu, GFP_KERNEL_ACCOUNT);
	if (!session->each || !zalloc_cpumask_var(&session->cpus, GFP_KERNEL) ||
	    !zalloc_cpumask_var(&session->recording, GFP_KERNEL) ||
	    !zalloc_cpumask_var(&session->gone, GFP_KERNEL))
		return false;
	for_each_possible_cpu(cpu)
		per_cpu_ptr(session->each, cpu)->session = session;
	return true;
}

struct kbarman_session *kbarman_session_spare(void)
{
	struct kbarman_session *session = kzalloc(sizeof(*session), GFP_KERNEL_ACCOUNT);

	if (!session)
		return NULL;
	session_init(session);
	if (session_allocate_cpus(session))
		return session;
	kbarman_session_drop_spare(session);
	return NULL;
}

/* ---- slots ---- */

static int session_take_slot(struct kbarman_session *session)
{
	unsigned int slot, used = 0, most = kbarman_sessions_most();
	int error = -EBUSY;

	spin_lock(&sessions_lock);
	for (slot = 0; slot < KBARMAN_SLOTS; slot++)
		used += !!slots[slot].session;
	for (slot = 0; error && used < most; slot++) {
		if (slots[slot].session)
			continue;
		session->slot = slot;
		session->wake = &slots[slot].wake;
		slots[slot].session = session;
		kref_get(&session->ref);
		error = 0;
	}
	spin_unlock(&sessions_lock);
	return error;
}

struct kbarman_session *kbarman_sessions_create(void)
{
	struct kbarman_session *session = kbarman_session_spare();
	int error;

	if (!session)
		return ERR_PTR(-ENOMEM);
	error = session_take_slot(session);
	if (!error)
		return session;
	kbarman_session_drop_spare(session);
	return ERR_PTR(error);
}

/* Nobody may look at @session any more. */
static bool session_is_over(const struct kbarman_session *session, const u32 *unused, u32 nothing)
{
	return session->left && (!sessions_watchers || !session->id);
}

/* @session may go if its slot is needed, or memory of @user, or what its @flags give it. */
static bool session_can_go(const struct kbarman_session *session, const u32 *user, u32 flags)
{
	return session->left && !session->choosers && (!user || session->who.user == *user) &&
	       (session->config.flags & flags) == flags;
}

/*
 * Take the oldest session of which @which is true out of its slot, with the slot's reference. NULL
 * if there is none.
 */
static struct kbarman_session *
sessions_take_out(bool (*which)(const struct kbarman_session *session, const u32 *user, u32 flags),
		  const u32 *user, u32 flags)
{
	struct kbarman_session *session, *found = NULL;
	unsigned int slot;

	spin_lock(&sessions_lock);
	for (slot = 0; slot < KBARMAN_SLOTS; slot++) {
		session = slots[slot].session;
		if (session && which(session, user, flags) && (!found || session->id < found->id))
			found = session;
	}
	if (found)
		slots[found->slot].session = NULL;
	spin_unlock(&sessions_lock);
	return found;
}

/* Those who look at the newest session may see another one from now on. */
static void session_drop(struct kbarman_session *session)
{
	kbarman_wake_all(session->wake);
	kbarman_session_put(session);
}

static void sessions_sweep(void)
{
	struct kbarman_session *session;

	while ((session = sessions_take_out(session_is_over, NULL, 0)))
		session_drop(session);
}

bool kbarman_sessions_give_way(const u32 *user, u32 flags)
{
	struct kbarman_session *session = sessions_take_out(session_can_go, user, flags);

	if (session)
		session_drop(session);
	return session;
}

/* ---- who is seen, and by whom ---- */

void kbarman_sessions_list(struct kbarman_session *session)
{
	lockdep_assert_held(&session->lock);
	spin_lock(&sessions_lock);
	WRITE_ONCE(session->id, ++sessions_configured);
	spin_unlock(&sessions_lock);
	kbarman_wake_all(session->wake);
}

void kbarman_sessions_leave(struct kbarman_session *session)
{
	spin_lock(&sessions_lock);
	session->left = true;
	spin_unlock(&sessions_lock);
	sessions_sweep();
	kbarman_session_put(session);
}

void kbarman_sessions_watch(void)
{
	spin_lock(&sessions_lock);
	sessions_watchers++;
	spin_unlock(&sessions_lock);
}

void kbarman_sessions_unwatch(void)
{
	spin_lock(&sessions_lock);
	sessions_watchers--;
	spin_unlock(&sessions_lock);
	sessions_sweep();
}

/* The session with the highest id below @id, or NULL. */
static struct kbarman_session *sessions_find_below(u64 id)
{
	struct kbarman_session *found = NULL, *session;
	unsigned int slot;

	lockdep_assert_held(&sessions_lock);
	for (slot = 0; slot < KBARMAN_SLOTS; slot++) {
		session = slots[slot].session;
		if (session && session->id && session->id < id &&
		    (!found || session->id > found->id))
			found = session;
	}
	return found;
}

static struct kbarman_session *sessions_find_newest(void)
{
	return sessions_find_below(U64_MAX) ?: &no_session;
}

struct kbarman_session *kbarman_sessions_newest(void)
{
	struct kbarman_session *session;

	spin_lock(&sessions_lock);
	session = sessions_find_newest();
	kref_get(&session->ref);
	spin_unlock(&sessions_lock);
	return session;
}

struct kbarman_capture *kbarman_sessions_newest_capture(void)
{
	struct kbarman_capture *capture;

	/* Without a reference to the session: it must not be freed under mmap_lock. */
	spin_lock(&sessions_lock);
	capture = kbarman_session_capture(sessions_find_newest());
	spin_unlock(&sessions_lock);
	return capture;
}

unsigned int kbarman_sessions_most(void)
{
	return clamp_t(unsigned int, READ_ONCE(sessions_most), 1, KBARMAN_SLOTS);
}

unsigned int kbarman_sessions_all(struct kbarman_session *found[KBARMAN_SLOTS])
{
	struct kbarman_session *session;
	unsigned int count = 0;
	u64 id = U64_MAX;

	spin_lock(&sessions_lock);
	while ((session = sessions_find_below(id))) {
		id = session->id;
		kref_get(&session->ref);
		found[count++] = session;
	}
	spin_unlock(&sessions_lock);
	return count;
}

struct kbarman_session *kbarman_sessions_choose(u64 id)
{
	struct kbarman_session *session;

	spin_lock(&sessions_lock);
	session = id == U64_MAX ? NULL : sessions_find_below(id + 1);
	if (session && session->id != id)
		session = NULL;
	if (session) {
		session->choosers++;
		kref_get(&session->ref);
	}
	spin_unlock(&sessions_lock);
	return session;
}

void kbarman_sessions_unchoose(struct kbarman_session *session)
{
	if (!session)
		return;
	spin_lock(&sessions_lock);
	session->choosers--;
	spin_unlock(&sessions_lock);
	kbarman_session_put(session);
}

void kbarman_sessions_poll(struct file *file, struct poll_table_struct *wait)
{
	unsigned int slot;

	for (slot = 0; slot < KBARMAN_SLOTS; slot++)
		kbarman_wake_watch(&slots[slot].wake, file, wait);
}

void __init kbarman_sessions_init(void)
{
	unsigned int slot;

	for (slot = 0; slot < KBARMAN_SLOTS; slot++)
		kbarman_wake_init(&slots[slot].wake);
	kbarman_wake_init(&no_wake);
	session_init(&no_session);
	no_session.wake = &no_wake;
}
