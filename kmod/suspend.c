// SPDX-License-Identifier: GPL-2.0-only
#include <linux/init.h>
#include <linux/notifier.h>
#include <linux/suspend.h>

#include "clock.h"
#include "compat/syscore.h"
#include "session.h"
#include "suspend.h"

/*
 * True from before tasks are frozen until after they run again. A session may start or stop in that
 * time. Protected by the session's lock.
 */
static bool suspending;
static struct kbarman_clock_pair before;	/* clocks when the suspend began, or when the
						 * session started if that was later */

static void add_sleep(struct kbarman_session *session, const struct kbarman_clock_pair *after)
{
	session->asleep.ticks += after->timestamp - before.timestamp;
	session->asleep.raw_ns += after->raw_ns - before.raw_ns;
	session->sleeps++;
}

void kbarman_suspend_session_starts(struct kbarman_session *session)
{
	session->asleep = (struct kbarman_clock_sleep) { };
	session->sleeps = 0;
	before = session->started;
}

void kbarman_suspend_session_stops(struct kbarman_session *session)
{
	if (suspending)
		add_sleep(session, &session->stopped);
}

static int on_event(struct notifier_block *unused, unsigned long event, void *data)
{
	struct kbarman_session *session = &kbarman_session;
	struct kbarman_clock_pair after;

	mutex_lock(&session->lock);
	switch (event) {
	case PM_HIBERNATION_PREPARE:
	case PM_SUSPEND_PREPARE:
		suspending = true;
		kbarman_clock_read(&before);
		break;
	case PM_POST_HIBERNATION:
	case PM_POST_SUSPEND:
		suspending = false;
		if (!session->running)
			break;
		kbarman_clock_read(&after);
		add_sleep(session, &after);
		break;
	}
	mutex_unlock(&session->lock);
	return NOTIFY_DONE;
}

static struct notifier_block notifier = {
	.notifier_call = on_event,
};

/*
 * The last call before a deep suspend, and the first call after it: no record is made in between.
 * Suspend to idle stops no counter, and does not make these calls.
 */
static int before_deep_sleep(KBARMAN_SYSCORE_ARGUMENT)
{
	kbarman_clock_suspend();
	return 0;
}

static void after_deep_sleep(KBARMAN_SYSCORE_ARGUMENT)
{
	kbarman_clock_resume();
}

KBARMAN_SYSCORE(deep_sleep, before_deep_sleep, after_deep_sleep);

int __init kbarman_suspend_init(void)
{
	int error = register_pm_notifier(&notifier);

	if (!error)
		kbarman_syscore_register(&deep_sleep);
	return error;
}

void kbarman_suspend_exit(void)
{
	kbarman_syscore_unregister(&deep_sleep);
	unregister_pm_notifier(&notifier);
}
