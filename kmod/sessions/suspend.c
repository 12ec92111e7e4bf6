// SPDX-License-Identifier: GPL-2.0-only
#include <linux/init.h>
#include <linux/rculist.h>
#include <linux/mutex.h>
#include <linux/notifier.h>
#include <linux/suspend.h>

#include "compat/syscore.h"
#include "ring/clock.h"
#include "session.h"
#include "sessions/cpus.h"
#include "sessions/rings.h"
#include "sessions/suspend.h"

/*
 * The sessions that record, and whether the machine suspends. A session may start or stop in that
 * time. The lock protects `sleeps` of every session, too. It is the innermost one: a suspend waits
 * for no session's lock.
 */
static DEFINE_MUTEX(suspend_lock);
static LIST_HEAD(suspend_sessions);
static bool suspending;

static void sleeps_add(struct kbarman_sleeps *sleeps, const struct kbarman_clock_pair *after)
{
	sleeps->asleep.ticks += after->timestamp - sleeps->before.timestamp;
	sleeps->asleep.raw_ns += after->raw_ns - sleeps->before.raw_ns;
	sleeps->count++;
}

void kbarman_suspend_session_starts(struct kbarman_session *session)
{
	struct kbarman_sleeps *sleeps = &session->sleeps;

	mutex_lock(&suspend_lock);
	sleeps->asleep = (struct kbarman_clock_sleep) { };
	sleeps->count = 0;
	sleeps->before = session->started;
	list_add(&sleeps->list, &suspend_sessions);
	mutex_unlock(&suspend_lock);
}

void kbarman_suspend_session_stops(struct kbarman_session *session)
{
	mutex_lock(&suspend_lock);
	/* The suspend may begin behind the end. */
	if (suspending && session->stopped.timestamp > session->sleeps.before.timestamp)
		sleeps_add(&session->sleeps, &session->stopped);
	list_del(&session->sleeps.list);
	mutex_unlock(&suspend_lock);
}

static void suspend_begins(void)
{
	struct kbarman_sleeps *sleeps;

	suspending = true;
	list_for_each_entry(sleeps, &suspend_sessions, list)
		kbarman_clock_read(&sleeps->before);
}

static void suspend_ends(void)
{
	struct kbarman_clock_pair after;
	struct kbarman_sleeps *sleeps;

	suspending = false;
	list_for_each_entry(sleeps, &suspend_sessions, list) {
		kbarman_clock_read(&after);
		sleeps_add(sleeps, &after);
	}
}

static int on_suspend(struct notifier_block *unused, unsigned long event, void *data)
{
	mutex_lock(&suspend_lock);
	switch (event) {
	case PM_HIBERNATION_PREPARE:
	case PM_SUSPEND_PREPARE:
		suspend_begins();
		break;
	case PM_POST_HIBERNATION:
	case PM_POST_SUSPEND:
		suspend_ends();
		break;
	}
	mutex_unlock(&suspend_lock);
	return NOTIFY_DONE;
}

static struct notifier_block suspend_notifier = {
	.notifier_call = on_suspend,
};

/*
 * The last call before a deep suspend, and the first call after it: no record is made in between.
 * Suspend to idle stops no counter, and does not make these calls.
 */
static int suspend_before_deep_sleep(KBARMAN_SYSCORE_ARGUMENT)
{
	kbarman_clock_suspend();
	return 0;
}

static void suspend_after_deep_sleep(KBARMAN_SYSCORE_ARGUMENT)
{
	struct kbarman_session *session;

	kbarman_clock_resume();
	if (kbarman_clock_raw)
		return;
	/* The counter has restarted, now or before: it is not the clock any more. */
	rcu_read_lock();
	list_for_each_entry_rcu(session, &kbarman_running_sessions, running_list)
		kbarman_rings_close_short(session);
	rcu_read_unlock();
}

KBARMAN_SYSCORE(deep_sleep, suspend_before_deep_sleep, suspend_after_deep_sleep);

int __init kbarman_suspend_init(void)
{
	int error = register_pm_notifier(&suspend_notifier);

	if (!error)
		kbarman_syscore_register(&deep_sleep);
	return error;
}

void kbarman_suspend_exit(void)
{
	kbarman_syscore_unregister(&deep_sleep);
	unregister_pm_notifier(&suspend_notifier);
}
