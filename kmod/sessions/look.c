// SPDX-License-Identifier: GPL-2.0-only
/* What is done with a session while it runs and after that. */
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/err.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/nospec.h>
#include <linux/pid.h>
#include <linux/poll.h>
#include <linux/string.h>
#include <linux/uidgid.h>

#include "capture/capture.h"
#include "capture/header.h"
#include "capture/reserved.h"
#include "capture/storage.h"
#include "capture/tables.h"
#include "capture/users.h"
#include "maps/probes.h"
#include "pmu/cpu.h"
#include "pmu/turns.h"
#include "ring/clock.h"
#include "session.h"
#include "sessions/calls.h"
#include "sessions/rings.h"
#include "sessions/attach.h"
#include "sources/object.h"
#include "stacks/callchain.h"

/* Take the session's lock. -ENODATA if none is configured, and -EINTR: it is not held then. */
static int session_lock(struct kbarman_session *session)
{
	int error = mutex_lock_killable(&session->lock);

	if (error || session->capture)
		return error;
	mutex_unlock(&session->lock);
	return -ENODATA;
}

int kbarman_session_lock_own(struct kbarman_session *session, const struct file *file)
{
	int error = session_lock(session);

	if (error || session->owner == file)
		return error;
	mutex_unlock(&session->lock);
	return -EPERM;
}

/* -ESTALE: @consume is about another recording. Context: session's lock held. */
static int consume_check(const struct kbarman_session *session, const struct kbarman_consume *consume)
{
	return (consume->session && consume->session != session->id) ||
	       (consume->recording && consume->recording != session->recording_id) ? -ESTALE : 0;
}

int kbarman_session_consume(struct kbarman_session *session, struct file *file,
			    const struct kbarman_consume *consume)
{
	struct kbarman_ring *ring;
	int error = kbarman_session_lock_own(session, file);

	if (error)
		return error;
	ring = kbarman_rings_find(session, consume->cpu);
	error = consume_check(session, consume) ?:
		ring ? kbarman_ring_consume(ring, consume->position) : -EINVAL;
	mutex_unlock(&session->lock);
	return error;
}

/* Context: session's lock held. */
static int observe_check(struct kbarman_session *session, const struct kbarman_consume *consume)
{
	struct kbarman_ring *ring = kbarman_rings_find(session, consume->cpu);
	int error = consume_check(session, consume);
	unsigned long start;

	if (error)
		return error;
	if (consume->cpu == KBARMAN_CPU_ALL)
		return session->running ? -EBUSY : 0;
	return ring && !kbarman_ring_after(consume->position, kbarman_ring_bounds(ring, &start)) ?
	       0 : -EINVAL;
}

int kbarman_session_observe(struct kbarman_session *session, struct kbarman_observer *observer,
			    const struct kbarman_consume *consume)
{
	bool done = consume->cpu == KBARMAN_CPU_ALL;
	int error = session_lock(session);

	if (error)
		return error;
	error = observe_check(session, consume);
	if (error)
		goto out;
	if (observer->session != session->id || observer->recording != session->recording_id) {
		memset(observer->positions, 0, nr_cpu_ids * sizeof(*observer->positions));
		WRITE_ONCE(observer->session, session->id);
		WRITE_ONCE(observer->recording, session->recording_id);
	}
	if (!done)
		WRITE_ONCE(observer->positions[array_index_nospec(consume->cpu, nr_cpu_ids)],
			   consume->position);
	WRITE_ONCE(observer->done, done);
out:
	mutex_unlock(&session->lock);
	return error;
}

int kbarman_session_turn(struct kbarman_session *session, struct file *file, u32 turn)
{
	int error = kbarman_session_lock_own(session, file);

	if (error)
		return error;
	error = session->running ? kbarman_turns_give(session, turn) : -EINVAL;
	mutex_unlock(&session->lock);
	return error;
}

/* What a query says of the device. */
static void query_fill_device(struct kbarman_query *query)
{
	query->abi = KBARMAN_ABI;
	query->page_size = PAGE_SIZE;
	query->word_bytes = sizeof(long);
	query->nr_cpus = nr_cpu_ids;
	query->clock_hz = kbarman_clock_hz();
	query->min_ring_bytes = KBARMAN_RING_MIN;
	query->max_ring_bytes = KBARMAN_RING_MAX;
	query->absent = kbarman_sources_absent();
	if (kbarman_clock_counts())
		query->features |= KBARMAN_FEATURE_RAW_CLOCK;
	query->features |= kbarman_maps_features() | kbarman_callchain_features | kbarman_object_features |
			   KBARMAN_FEATURE_COUNTS | KBARMAN_FEATURE_DETAILS |
			   KBARMAN_FEATURE_TURNS | KBARMAN_FEATURE_BOOT |
			   KBARMAN_FEATURE_REUSE | KBARMAN_FEATURE_EACH;

	if (kbarman_reserved_bytes())
		query->features |= KBARMAN_FEATURE_RESERVED;
	if (kbarman_cpu_pmu_present(query->pmu_name, sizeof(query->pmu_name)))
		query->features |= KBARMAN_FEATURE_PMU;
}

/* The session's part of a query of @file. Context: session's lock held. */
static void query_fill_session(struct kbarman_query *query, struct kbarman_session *session,
			       const struct file *file)
{
	struct kbarman_capture *capture = session->capture;

	if (session->running)
		query->state |= KBARMAN_STATE_RUNNING;
	if (session->owner)
		query->state |= KBARMAN_STATE_OWNED;
	if (session->owner == file)
		query->state |= KBARMAN_STATE_MINE;
	if (capture) {
		query->state |= KBARMAN_STATE_CONFIGURED;
		if (session->fallback)
			query->state |= KBARMAN_STATE_FALLBACK;
		if (session->unsteady || (session->running && kbarman_clock_is_unsteady()))
			query->state |= KBARMAN_STATE_UNSTEADY;
		query->mode = session->config.mode;
		query->sources = session->config.sources;
		query->nr_events = session->config.nr_events;
		query->generation = kbarman_header_generation(capture);
		query->session = session->id;
		query->recording = session->recording_id;
		query->ring_bytes = capture->layout.ring_bytes;
		query->header_bytes = capture->layout.header_bytes;
		query->map_bytes = capture->layout.map_bytes;
		query->map_stride = capture->layout.map_bytes;
	}
}

int kbarman_session_query(struct kbarman_session *session, struct file *file,
			  struct kbarman_query *query, u64 *cpus, u32 words)
{
	u32 cpu;
	int error;

	query_fill_device(query);
	error = mutex_lock_killable(&session->lock);
	if (error)
		return error;
	query_fill_session(query, session, file);
	for (cpu = 0; session->capture && cpu < nr_cpu_ids && cpu / 64 < words; cpu++)
		if (kbarman_capture_tail(session->capture, cpu))
			cpus[cpu / 64] |= 1ULL << cpu % 64;
	mutex_unlock(&session->lock);
	return 0;
}

static void stats_add_ring(struct kbarman_stats *stats, const struct kbarman_session *session,
			   struct kbarman_ring *ring)
{
	const struct kbarman_counters *counters = &per_cpu_ptr(session->each, ring->cpu)->counters;
	struct kbarman_map_tail *tail = kbarman_capture_tail(session->capture, ring->cpu);
	u64 overwritten = ring->overwrite ? kbarman_ring_overwritten(ring) : 0, lost;
	/*
	 * Read after `overwritten`, so that the result has no more overwritten than written
	 * records.
	 */
	u64 written = kbarman_ring_written(ring);
	int reason;

	overwritten = min(overwritten, written);
	stats->written += written;
	stats->overwritten += overwritten;
	if (ring->overwrite)
		stats->oldest = ring->oldest;
	tail->counts.written = written;
	tail->counts.overwritten = overwritten;
	stats->bytes += READ_ONCE(ring->header->write_offset);
	if (!ring->overwrite)
		stats->consumed += READ_ONCE(ring->header->read_offset);
	for (reason = 0; reason < KBARMAN_LOST_REASONS; reason++) {
		lost = kbarman_counted(&ring->lost[reason]);
		stats->lost[reason] += lost;
		tail->counts.lost[reason] = lost;
	}
	for (reason = 0; reason < KBARMAN_STOP_REASONS; reason++)
		stats->stopped[reason] += kbarman_counted(&counters->stops[reason]);
}

static bool session_records(const struct kbarman_session *session, int cpu)
{
	return cpumask_test_cpu(cpu, session->recording) && !cpumask_test_cpu(cpu, session->gone);
}

void kbarman_session_fill_stats(struct kbarman_stats *stats, struct kbarman_session *session)
{
	struct kbarman_ring *ring;
	int cpu;

	for_each_cpu(cpu, session->cpus) {
		ring = kbarman_rings_find(session, cpu);
		if (!ring)
			continue;
		stats_add_ring(stats, session, ring);
		stats->missed[KBARMAN_MISSED_COUNTER] +=
			kbarman_counted(&per_cpu_ptr(session->each, cpu)->counters.unreadable);
		stats->online += session_records(session, cpu);
	}
	stats->oldest = 0;
}

int kbarman_session_stats(struct kbarman_session *session, u32 cpu, struct kbarman_stats *stats)
{
	struct kbarman_ring *ring;
	int error = session_lock(session);

	if (error)
		return error;
	error = -EINVAL;
	if (cpu != KBARMAN_CPU_ALL) {
		ring = kbarman_rings_find(session, cpu);
		if (!ring)
			goto out;
		stats_add_ring(stats, session, ring);
		stats->online = session_records(session, cpu);
	} else {
		kbarman_header_stats(session->capture, stats);
		kbarman_session_fill_stats(stats, session);
	}
	error = 0;
out:
	mutex_unlock(&session->lock);
	return error;
}

int kbarman_session_clock(struct kbarman_session *session, struct kbarman_clock *clock)
{
	int error = session_lock(session);

	if (error)
		return error;
	clock->start = session->started;
	clock->stop = session->stopped;
	kbarman_clock_read(&clock->now);
	mutex_unlock(&session->lock);
	return 0;
}

int kbarman_session_add_map(struct kbarman_session *session, struct file *file,
			    const struct kbarman_map_row *row, const char *image)
{
	int error = kbarman_session_lock_own(session, file);

	if (error)
		return error;
	if (row && !row->task_id && !session->kernel_addresses)
		error = -EACCES;
	if (!error && row)
		error = kbarman_tables_add_map(session->capture, 0, KBARMAN_USER_ROOT, row->task_id,
					       row->base_address, row->length, row->image_offset,
					       image, row->image_length, 0);
	mutex_unlock(&session->lock);
	return error;
}

struct kbarman_capture *kbarman_session_add_symbols(struct kbarman_session *session, struct file *file, u64 bytes)
{
	struct kbarman_capture *capture;
	int error = kbarman_session_lock_own(session, file);

	if (error)
		return ERR_PTR(error);
	capture = session->capture;
	if (!session->kernel_addresses)
		error = -EPERM;
	else if (capture->symbols)
		error = -EEXIST;
	else
		error = kbarman_capture_add_symbols(capture, bytes, cpumask_weight(session->cpus));
	if (!error)
		kbarman_capture_get(capture);
	mutex_unlock(&session->lock);
	return error ? ERR_PTR(error) : capture;
}

/* What it has told is about what the session records, or has recorded last. */
static bool observer_is_here(const struct kbarman_observer *observer, const struct kbarman_session *session,
			     const struct kbarman_capture *capture)
{
	return READ_ONCE(observer->session) == READ_ONCE(capture->session) &&
	       READ_ONCE(observer->recording) == READ_ONCE(session->recording_id);
}

struct look {
	struct kbarman_session *session;
	const struct kbarman_observer *observer;	/* NULL: the session's own */
	__poll_t ready;
};

/* For kbarman_wake_arm(), with a struct look. */
static unsigned int pages_left(void *context)
{
	struct look *look = context;
	struct kbarman_session *session = look->session;
	/* Pairs with the release in kbarman_descriptor_consume(). */
	const u64 *positions = look->observer ? smp_load_acquire(&look->observer->positions) : NULL;
	/* What a stop wrote is complete. Pairs with kbarman_session_stop_locked(). */
	const bool going = smp_load_acquire(&session->going);
	struct kbarman_capture *capture = kbarman_session_capture(session);
	const bool here = capture && positions && observer_is_here(look->observer, session, capture);
	u64 fill = going && capture ? kbarman_capture_fill(capture, positions) : 0, left = 1;

	look->ready = 0;
	if (!capture || (!going && !(here && READ_ONCE(look->observer->done))))
		look->ready = EPOLLIN | EPOLLRDNORM | EPOLLHUP;
	else if (going && ((positions && !here) || fill >= capture->watermark))
		look->ready = EPOLLIN | EPOLLRDNORM;
	else if (going)
		left = max_t(u64, (capture->watermark - fill) >> KBARMAN_RING_PAGE_SHIFT, 1);
	if (capture)
		kbarman_capture_put(capture);
	return look->ready ? 0 : left;
}

/* Without the session's lock: poll() waits for nobody. */
__poll_t kbarman_session_poll(struct kbarman_session *session, struct file *file,
			      struct poll_table_struct *wait, const struct kbarman_observer *observer)
{
	struct look look = { .session = session, .observer = observer };

	kbarman_wake_arm(session->wake, file, wait, pages_left, &look);
	return look.ready;
}

/* ---- the list of sessions ---- */

/* True if @file may see who owns the session: its opener is the same user, or sees everybody. */
static bool session_shows_owner(const struct kbarman_session *session, struct file *file)
{
	return kbarman_user_of(file->f_cred) == session->who.user ||
	       file_ns_capable(file, &init_user_ns, CAP_SYS_PTRACE);
}

static void info_fill_owner(struct kbarman_session_info *info,
			    const struct kbarman_session *session)
{
	info->pid = session->owner ? pid_vnr(session->who.pid) : 0;
	info->uid = from_kuid_munged(current_user_ns(), session->who.uid);
	strscpy(info->comm, session->who.comm, sizeof(info->comm));
}

/* Context: session's lock held. */
static void info_fill_recording(struct kbarman_session_info *info, struct kbarman_session *session)
{
	struct kbarman_stats stats = { };
	int reason;

	info->nr_pids = session->config.nr_pids;
	info->started_ns = session->started.realtime_ns;
	info->stopped_ns = session->stopped.realtime_ns;
	info->bytes = session->capture->bytes + kbarman_half_bytes(session->capture->half);
	kbarman_session_fill_stats(&stats, session);
	info->written = stats.written;
	info->overwritten = stats.overwritten;
	for (reason = 0; reason < KBARMAN_LOST_REASONS; reason++)
		info->lost += stats.lost[reason];
}

int kbarman_session_tell(struct kbarman_session *session, struct file *file,
			 struct kbarman_session_info *info)
{
	struct kbarman_query query = { };
	int error;

	*info = (struct kbarman_session_info) { .uid = ~0U };
	error = mutex_lock_killable(&session->lock);
	if (error)
		return error;
	query_fill_session(&query, session, file);
	info->session = query.session;
	info->state = query.state;
	info->mode = query.mode;
	info->sources = query.sources;
	info->ring_bytes = query.ring_bytes;
	if (session->capture)
		info_fill_recording(info, session);
	if (session_shows_owner(session, file))
		info_fill_owner(info, session);
	else
		info->state |= KBARMAN_STATE_HIDDEN;
	mutex_unlock(&session->lock);
	return 0;
}
