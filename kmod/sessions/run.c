// SPDX-License-Identifier: GPL-2.0-only
/* Start and stop of a session: the order of things. */
#include <linux/bitmap.h>
#include <linux/kernel.h>
#include <linux/lockdep.h>
#include <linux/preempt.h>
#include <linux/string.h>
#include <linux/threads.h>
#include <linux/utsname.h>

#include "capture/capture.h"
#include "capture/collect.h"
#include "capture/header.h"
#include "capture/storage.h"
#include "compat/mutex.h"
#include "maps/maps.h"
#include "ring/clock.h"
#include "ring/wake.h"
#include "session.h"
#include "sessions/calls.h"
#include "sessions/chosen.h"
#include "sessions/cpus.h"
#include "sessions/rings.h"
#include "sessions/attach.h"
#include "sessions/suspend.h"
#include "sources/sources.h"

/*
 * The clock that all sessions share. It is chosen again when a session begins, but not while the
 * clock is held: the timestamps of a session are all of one clock.
 */
static DEFINE_MUTEX(clocks_lock);
static unsigned int clocks_held;	/* how often. Protected by clocks_lock */

void kbarman_clocks_hold(void)
{
	mutex_lock(&clocks_lock);
	if (!clocks_held++)
		kbarman_clock_choose();
	mutex_unlock(&clocks_lock);
}

void kbarman_clocks_release(void)
{
	mutex_lock(&clocks_lock);
	clocks_held--;
	mutex_unlock(&clocks_lock);
}

static void header_tell_of_chains(const struct kbarman_session *session)
{
	u32 parts = session->chain_parts;

	if (!parts)
		return;
	kbarman_header_fact(session->capture, "callchain", "%s%s%s",
			    !(parts & KBARMAN_CONFIGURE_CHAIN_KERNEL) ? "user" :
			    parts == KBARMAN_CONFIGURE_CHAIN_KERNEL   ? "kernel" : "both",
			    parts & KBARMAN_CONFIGURE_CHAIN_STACK ? ",stack" : "",
			    session->config.flags & KBARMAN_CONFIGURE_CHAIN_SWITCH ?
				    ",switch" : "");
	kbarman_header_fact(session->capture, "max_stack", "%u", session->config.max_stack);
}

/* The frequency of the samples; 0: there are none, or they have a period. */
static u64 session_hz(const struct kbarman_session *session)
{
	const struct kbarman_event *first = session->events;

	return session->config.nr_events && first->attr.freq ? first->attr.sample_freq : 0;
}

static void header_begin(struct kbarman_session *session)
{
	struct kbarman_capture *capture = session->capture;

	kbarman_capture_reset(capture, session->config.target_name, session_hz(session));
	session->unsteady = false;
	kbarman_clocks_hold();
	memset(&session->started, 0, sizeof(session->started));
	memset(&session->stopped, 0, sizeof(session->stopped));

	kbarman_header_fact(capture, "ext", "1");
	kbarman_header_fact(capture, "host", "%s", init_uts_ns.name.nodename);
	kbarman_header_fact(capture, "release", "%s", init_uts_ns.name.release);
	kbarman_header_fact(capture, "machine", "%s", init_uts_ns.name.machine);
	kbarman_sched_tell_states(capture);
	if (session->config.flags & KBARMAN_CONFIGURE_OBJECTS)
		kbarman_header_fact(capture, "objects", "1");
	header_tell_of_chains(session);
	kbarman_sources_tell(session);
}

static void header_set_clock(struct kbarman_session *session)
{
	struct bm_protocol_clock_info info = {
		.timestamp_base = session->started.timestamp,
		.unix_base_ns = session->started.realtime_ns,
	};
	u64 multiplier, divisor;

	kbarman_clock_fit(&session->started, NULL, NULL, &multiplier, &divisor);
	info.timestamp_multiplier = multiplier;
	info.timestamp_divisor = divisor;
	kbarman_header_set_clock(session->capture, &info);
}

/* The rings open, now that all sources are there, and the time begins. */
static void session_begin(struct kbarman_session *session)
{
	preempt_disable();
	kbarman_clock_read(&session->started);
	header_set_clock(session);
	kbarman_cpus_begin(session);
	preempt_enable();
	kbarman_header_fact(session->capture, "raw_base", "%llu", session->started.raw_ns);
	kbarman_header_begin(session->capture);
	kbarman_suspend_session_starts(session);
}

static void header_end(struct kbarman_session *session)
{
	struct bm_protocol_header_start *start = session->capture->header;
	u64 multiplier, divisor, slept;

	kbarman_clock_fit(&session->started, &session->stopped, &session->sleeps.asleep,
			  &multiplier, &divisor);
	slept = kbarman_clock_slept(&session->started, &session->stopped, &session->sleeps.asleep);
	start->clock_info.timestamp_multiplier = multiplier;
	start->clock_info.timestamp_divisor = divisor;
	start->last_timestamp = session->stopped.timestamp;
	/*
	 * For readers with more than 64 bits of arithmetic: the two readings that the fraction
	 * approximates. raw_end is given as if CLOCK_MONOTONIC_RAW had gone on while the machine
	 * was suspended.
	 */
	kbarman_header_fact(session->capture, "raw_end", "%llu,%llu", session->stopped.timestamp,
			    session->stopped.raw_ns + slept);
	session->unsteady = kbarman_clock_is_unsteady();
	if (session->unsteady)
		kbarman_header_fact(session->capture, "clock_unsteady", "1");
	if (session->sleeps.count)
		kbarman_header_fact(session->capture, "asleep", "%u,%llu", session->sleeps.count,
				    slept);
	kbarman_clocks_release();
	kbarman_rings_settle(session);
}

int kbarman_session_start(struct kbarman_session *session, struct file *file,
			  struct kbarman_start *report)
{
	int error = kbarman_session_lock_own(session, file);

	if (error)
		return error;
	error = -EBUSY;
	if (session->running)
		goto out;
	/* What can fail comes before the former recording is lost: cheap things first. */
	error = kbarman_cpus_prepare(session, report) ?: kbarman_sources_attach(session);
	if (error) {
		kbarman_cpus_cancel(session);
		goto out;
	}
	/* Readers of maps see that it is odd before anything goes. Pairs with their barrier. */
	session->recording_id++;
	kbarman_rings_sign(session);
	smp_wmb();
	kbarman_rings_empty(session);
	header_begin(session);
	/*
	 * The bits are from configure or from the last start. The threads that they name may have
	 * exited since, and other threads may have the same ids now.
	 */
	if (session->tasks)
		bitmap_zero(session->tasks, PID_MAX_LIMIT);
	kbarman_collect_start(session->capture, &session->each->ring);
	/*
	 * Choose before a probe asks who is recorded: everything that a chosen process does from
	 * now on is seen.
	 */
	kbarman_chosen_choose(session);
	kbarman_sources_begin(session);
	/*
	 * Choose again, for threads that were created since the first choice: the fork probe did
	 * not look yet, or the creating thread was not chosen yet.
	 */
	kbarman_chosen_choose(session);
	kbarman_maps_begin(session);
	kbarman_cpus_start(session);
	session_begin(session);
	session->running = true;
	WRITE_ONCE(session->going, true);
	smp_wmb();
	session->recording_id++;
	kbarman_rings_sign(session);
	kbarman_wake_all(session->wake);
out:
	mutex_unlock(&session->lock);
	return error;
}

/* Stop it if it runs. */
static void session_stop_locked(struct kbarman_session *session)
{
	lockdep_assert_held(&session->lock);
	if (!session->running)
		return;
	/*
	 * The rings close before the first source is taken away, which takes long, and the end is
	 * that moment: everything is recorded up to then, and nothing after it.
	 */
	kbarman_cpus_last(session);
	preempt_disable();
	kbarman_rings_close(session);
	kbarman_clock_read(&session->stopped);
	preempt_enable();
	kbarman_suspend_session_stops(session);
	kbarman_cpus_stop(session);
	session->running = false;
	kbarman_sources_detach(session);
	kbarman_collect_stop(session->capture);
	kbarman_wake_sync(session->wake);
	header_end(session);
	/* Last, because they may be many: the table of strings has room for all facts but these. */
	kbarman_sources_tell_ends(session);
	kbarman_session_fill_stats(&(struct kbarman_stats) { }, session);
	kbarman_rings_sign(session);
	smp_store_release(&session->going, false);	/* pairs with kbarman_session_poll() */
	kbarman_wake_all(session->wake);
}

void kbarman_session_abandon(struct kbarman_session *session, struct file *file)
{
	mutex_lock(&session->lock);
	if (session->owner == file) {
		session_stop_locked(session);
		session->owner = NULL;
	}
	mutex_unlock(&session->lock);
}

int kbarman_session_stop(struct kbarman_session *session, struct file *file)
{
	int error = kbarman_session_lock_own(session, file);

	if (error)
		return error;
	session_stop_locked(session);
	mutex_unlock(&session->lock);
	return 0;
}
