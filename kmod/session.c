// SPDX-License-Identifier: GPL-2.0-only
#include <linux/capability.h>
#include <linux/err.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/pid.h>
#include <linux/poll.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/threads.h>
#include <linux/utsname.h>
#include <linux/vmalloc.h>

#include "callchain.h"
#include "clock.h"
#include "collect.h"
#include "record.h"
#include "session.h"
#include "source_maps.h"
#include "source_pmu.h"
#include "sources.h"
#include "suspend.h"
#include "wake.h"

#define DEFAULT_TASKS	16384
#define DEFAULT_MAPS	65536
#define DEFAULT_STRINGS	(4U << 20)

static unsigned long default_ring_bytes = 1UL << 20;
module_param_named(ring_bytes, default_ring_bytes, ulong, 0644);
MODULE_PARM_DESC(ring_bytes, "Bytes of a CPU's ring if the session sets none (default 1 MiB)");

struct kbarman_session kbarman_session = {
	.lock = __MUTEX_INITIALIZER(kbarman_session.lock),
};

DEFINE_PER_CPU_ALIGNED(struct kbarman_ring, kbarman_rings);

/* Memory that kbarman_ring_init() needs for the ring of each CPU. Maps do not show this memory. */
static DEFINE_PER_CPU(struct kbarman_ring_page *, ring_pages);

/* ---- one CPU ---- */

static void forget_ring(int cpu)
{
	memset(per_cpu_ptr(&kbarman_rings, cpu), 0, sizeof(struct kbarman_ring));
	kvfree(per_cpu(ring_pages, cpu));
	per_cpu(ring_pages, cpu) = NULL;
}

static int allocate_ring(struct kbarman_session *session, int cpu)
{
	unsigned long pages = session->config.ring_bytes >> KBARMAN_RING_PAGE_SHIFT;

	if (!per_cpu(ring_pages, cpu))
		per_cpu(ring_pages, cpu) =
			kvcalloc(pages, sizeof(struct kbarman_ring_page), GFP_KERNEL);
	if (!per_cpu(ring_pages, cpu))
		return -ENOMEM;
	return kbarman_capture_add_ring(session->capture, cpu);
}

static void reset_ring(struct kbarman_session *session, int cpu)
{
	kbarman_ring_init(per_cpu_ptr(&kbarman_rings, cpu), session->capture->rings[cpu],
			  per_cpu(ring_pages, cpu), session->config.ring_bytes, cpu,
			  session->config.mode == KBARMAN_MODE_OVERWRITE);
}

int kbarman_session_add_ring(struct kbarman_session *session, int cpu)
{
	int error = allocate_ring(session, cpu);

	if (!error)
		reset_ring(session, cpu);
	return error;
}

/* ---- configure ---- */

/*
 * Choose all current threads of the processes to record. -ESRCH if one of the processes does not
 * exist; the others are chosen all the same. The threads of a process are chosen in the order of
 * their creation, and each bit is set with full ordering: inherit_filter() relies on both.
 */
static int choose_tasks(struct kbarman_session *session)
{
	struct task_struct *leader, *thread;
	int error = 0;
	u32 i;

	rcu_read_lock();
	for (i = 0; i < session->config.nr_pids; i++) {
		leader = pid_task(session->pids[i], PIDTYPE_TGID);
		if (!leader) {
			error = -ESRCH;
			continue;
		}
		for_each_thread(leader, thread)
			test_and_set_bit(thread->pid, session->tasks);
	}
	rcu_read_unlock();
	return error;
}

static int allocate_tasks(struct kbarman_session *session, const u32 *pids)
{
	u32 i, count = session->config.nr_pids;

	if (!count)
		return 0;
	session->tasks = vzalloc(BITS_TO_LONGS(PID_MAX_LIMIT) * sizeof(long));
	session->pids = kvcalloc(count, sizeof(*session->pids), GFP_KERNEL);
	if (!session->tasks || !session->pids)
		return -ENOMEM;
	for (i = 0; i < count; i++) {
		session->pids[i] = find_get_pid(pids[i]);
		if (!session->pids[i])
			return -ESRCH;
	}
	return choose_tasks(session);
}

static void forget_tasks(struct kbarman_session *session)
{
	u32 i;

	for (i = 0; session->pids && i < session->config.nr_pids; i++)
		put_pid(session->pids[i]);
	kvfree(session->pids);
	session->pids = NULL;
	vfree(session->tasks);
	session->tasks = NULL;
}

/*
 * Protects session->capture for readers without the session's lock. mmap() needs the capture under
 * mmap_lock, and the session's lock comes before mmap_lock. A page fault does not take
 * capture_lock: the file of the mapping holds the capture.
 */
static DEFINE_SPINLOCK(capture_lock);

static void set_capture(struct kbarman_session *session, struct kbarman_capture *capture)
{
	struct kbarman_capture *former;

	spin_lock(&capture_lock);
	former = session->capture;
	session->capture = capture;
	spin_unlock(&capture_lock);
	kbarman_capture_put(former);
}

static void discard(struct kbarman_session *session)
{
	int cpu;

	for_each_possible_cpu(cpu)
		forget_ring(cpu);
	set_capture(session, NULL);
	kbarman_callchain_free();
	forget_tasks(session);
}

/* KBARMAN_CONFIGURE_CHAIN_* of which this session's chains consist. */
static u32 chain_parts(const struct kbarman_session *session)
{
	u32 parts = session->config.flags & KBARMAN_CONFIGURE_CHAIN;

	return session->kernel_addresses ? parts : parts & ~KBARMAN_CONFIGURE_CHAIN_KERNEL;
}

/* The longest block is a sample with all counters and a chain of max_stack addresses. */
static int allocate_chains(struct kbarman_session *session)
{
	const struct kbarman_configure *config = &session->config;
	u64 longest = sizeof(bm_uintptr) + sizeof(struct bm_protocol_sample) + sizeof(bm_uintptr) +
		      config->nr_events * sizeof(u64) + sizeof(struct kbarman_callchain) +
		      (u64)config->max_stack * sizeof(bm_uintptr);

	if (!(config->flags & KBARMAN_CONFIGURE_CHAIN))
		return 0;
	if (longest > config->ring_bytes / 8)
		return -E2BIG;
	return kbarman_callchain_allocate(session->cpus, chain_parts(session), config->max_stack);
}

static int allocate(struct kbarman_session *session, const u32 *pids)
{
	struct kbarman_configure *config = &session->config;
	struct kbarman_layout layout = {
		.max_cores = nr_cpu_ids,
		.max_tasks = config->max_tasks,
		.max_maps = config->max_maps,
		.max_strings = config->max_strings,
		.max_series = KBARMAN_SERIES_COUNT + config->max_series,
		.ring_bytes = config->ring_bytes,
	};
	struct kbarman_capture *capture;
	unsigned int rings = 0;
	int cpu, error;

	error = kbarman_layout_init(&layout);
	if (error)
		return error;
	/*
	 * A CPU that is not present yet gets its ring when it comes online. If that fails, the CPU
	 * does not record.
	 */
	for_each_cpu_and(cpu, session->cpus, cpu_present_mask)
		rings++;
	/* Refuse now a configuration that would use up the machine's memory later. */
	if (rings * (u64)config->ring_bytes + kbarman_layout_memory(&layout) >
	    (u64)si_mem_available() * PAGE_SIZE / 4 * 3)
		return -ENOMEM;
	capture = kbarman_capture_create(&layout, config->mode == KBARMAN_MODE_OVERWRITE);
	if (IS_ERR(capture))
		return PTR_ERR(capture);
	capture->kernel_addresses = session->kernel_addresses;
	set_capture(session, capture);

	for_each_cpu_and(cpu, session->cpus, cpu_present_mask) {
		error = kbarman_session_add_ring(session, cpu);
		if (error)
			return error;
	}
	kbarman_header_reset(capture, config->target_name, 0);
	return allocate_chains(session) ?: allocate_tasks(session, pids);
}

static void fill_defaults(struct kbarman_configure *config)
{
	if (!config->ring_bytes)
		config->ring_bytes = default_ring_bytes;
	config->ring_bytes = roundup_pow_of_two(clamp_t(u64, config->ring_bytes,
							KBARMAN_RING_MIN, KBARMAN_RING_MAX));
	if (!config->watermark)
		config->watermark = config->ring_bytes / 4;
	if (!config->max_tasks)
		config->max_tasks = DEFAULT_TASKS;
	if (!config->max_maps)
		config->max_maps = DEFAULT_MAPS;
	if (!config->max_strings)
		config->max_strings = DEFAULT_STRINGS;
	if (config->flags & KBARMAN_CONFIGURE_CHAIN && !config->max_stack)
		config->max_stack = KBARMAN_DEFAULT_STACK;
	if (!config->target_name[0])
		strscpy(config->target_name, init_uts_ns.name.nodename,
			sizeof(config->target_name));
}

static bool chains_possible(u32 flags)
{
	if (flags & KBARMAN_CONFIGURE_CHAIN_USER &&
	    !(kbarman_callchain_features & KBARMAN_FEATURE_CHAIN_USER))
		return false;
	return !(flags & KBARMAN_CONFIGURE_CHAIN_KERNEL) ||
	       kbarman_callchain_features & KBARMAN_FEATURE_CHAIN_KERNEL;
}

/* Without its tasks nothing can be recorded. */
static bool sources_possible(const struct kbarman_configure *config)
{
	u32 needed = config->sources | KBARMAN_ABSENT_TASKS;

	if (config->flags & KBARMAN_CONFIGURE_COUNT_SWITCH)
		needed |= KBARMAN_SOURCE_SCHED;
	return !(needed & kbarman_sources_absent());
}

int kbarman_session_configure(struct file *file, struct kbarman_configure *config,
			      const struct kbarman_event *events, const struct cpumask *cpus,
			      const u32 *pids)
{
	struct kbarman_session *session = &kbarman_session;
	int error;

	if (!chains_possible(config->flags) || !sources_possible(config))
		return -EOPNOTSUPP;
	mutex_lock(&session->lock);
	error = -EBUSY;
	if (session->running || (session->owner && session->owner != file))
		goto out;

	discard(session);
	session->owner = file;
	session->id++;
	session->fallback = false;
	session->unsteady = false;
	kbarman_clock_choose();
	session->kernel_addresses = file_ns_capable(file, &init_user_ns, CAP_SYSLOG);
	memset(&session->started, 0, sizeof(session->started));
	memset(&session->stopped, 0, sizeof(session->stopped));
	session->config = *config;
	fill_defaults(&session->config);
	memcpy(session->events, events, config->nr_events * sizeof(*events));
	cpumask_copy(session->cpus, cpus);

	error = allocate(session, pids);
	if (error) {
		discard(session);
		session->owner = NULL;
	}
out:
	mutex_unlock(&session->lock);
	return error;
}

/* ---- start and stop ---- */

static void tell_of_chains(const struct kbarman_session *session)
{
	u32 parts = chain_parts(session);

	if (!parts)
		return;
	kbarman_header_fact(session->capture, "callchain", "%s%s",
			    parts == KBARMAN_CONFIGURE_CHAIN_USER   ? "user" :
			    parts == KBARMAN_CONFIGURE_CHAIN_KERNEL ? "kernel" : "both",
			    session->config.flags & KBARMAN_CONFIGURE_CHAIN_SWITCH ?
				    ",switch" : "");
	kbarman_header_fact(session->capture, "max_stack", "%u", session->config.max_stack);
}

static void begin_header(struct kbarman_session *session)
{
	struct kbarman_capture *capture = session->capture;
	struct bm_protocol_header_start *start = kbarman_header_start(capture);
	u64 multiplier, divisor;

	kbarman_header_reset(capture, session->config.target_name,
			     session->config.flags & KBARMAN_CONFIGURE_FREQ ?
				     session->config.sample : 0);
	session->unsteady = false;
	kbarman_clock_choose();
	kbarman_clock_read(&session->started);
	memset(&session->stopped, 0, sizeof(session->stopped));
	kbarman_suspend_session_starts(session);
	kbarman_clock_fit(&session->started, NULL, &session->asleep, &multiplier, &divisor);
	start->clock_info = (struct bm_protocol_clock_info) {
		.timestamp_base = session->started.timestamp,
		.timestamp_multiplier = multiplier,
		.timestamp_divisor = divisor,
		.unix_base_ns = session->started.realtime_ns,
	};
	start->last_timestamp = session->started.timestamp;

	kbarman_header_fact(capture, "ext", "1");
	kbarman_header_fact(capture, "raw_base", "%llu", session->started.raw_ns);
	kbarman_header_fact(capture, "host", "%s", init_uts_ns.name.nodename);
	kbarman_header_fact(capture, "release", "%s", init_uts_ns.name.release);
	kbarman_header_fact(capture, "machine", "%s", init_uts_ns.name.machine);
	kbarman_sched_tell_states(capture);
	tell_of_chains(session);
}

static void end_header(struct kbarman_session *session)
{
	struct bm_protocol_header_start *start = kbarman_header_start(session->capture);
	u64 multiplier, divisor, slept;
	int cpu;

	kbarman_clock_read(&session->stopped);
	kbarman_suspend_session_stops(session);
	kbarman_clock_fit(&session->started, &session->stopped, &session->asleep,
			  &multiplier, &divisor);
	slept = kbarman_clock_slept(&session->started, &session->stopped, &session->asleep);
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
	if (session->sleeps)
		kbarman_header_fact(session->capture, "asleep", "%u,%llu", session->sleeps, slept);
	for_each_cpu(cpu, session->cpus)
		if (per_cpu(kbarman_rings, cpu).data)
			kbarman_ring_settle(per_cpu_ptr(&kbarman_rings, cpu));
}

int kbarman_session_start(struct file *file, struct kbarman_start *report)
{
	struct kbarman_session *session = &kbarman_session;
	int cpu, error;

	mutex_lock(&session->lock);
	error = -EINVAL;
	if (!session->capture)
		goto out;
	error = -EBUSY;
	if (session->owner != file || session->running)
		goto out;

	for_each_cpu(cpu, session->cpus)
		if (per_cpu(kbarman_rings, cpu).data)
			reset_ring(session, cpu);
	begin_header(session);
	/*
	 * The bits are from configure or from the last start. The threads that they name may have
	 * exited since, and other threads may have the same ids now.
	 */
	if (session->tasks)
		bitmap_zero(session->tasks, PID_MAX_LIMIT);
	kbarman_collect_start(session->capture);
	/*
	 * Choose before a probe asks who is recorded: everything that a chosen process does from
	 * now on is seen.
	 */
	choose_tasks(session);
	error = kbarman_sources_attach(session);
	if (error)
		goto err_collect;
	/*
	 * Choose again, for threads that were created since the first choice: the fork probe was
	 * not attached yet, or the creating thread was not chosen yet.
	 */
	choose_tasks(session);
	kbarman_maps_begin();
	error = kbarman_sources_start(session, report);
	session->running = !error;
	if (!error)
		goto out;
	kbarman_sources_detach(session);
err_collect:
	kbarman_collect_stop(session->capture);
out:
	mutex_unlock(&session->lock);
	return error;
}

static void stop_locked(struct kbarman_session *session)
{
	lockdep_assert_held(&session->lock);
	if (!session->running)
		return;
	kbarman_sources_stop(session);
	session->running = false;
	kbarman_sources_detach(session);
	kbarman_collect_stop(session->capture);
	kbarman_wake_sync();
	end_header(session);
	kbarman_wake_all();
}

int kbarman_session_stop(struct file *file)
{
	struct kbarman_session *session = &kbarman_session;
	int error = -EBUSY;

	mutex_lock(&session->lock);
	if (session->owner == file) {
		stop_locked(session);
		error = 0;
	}
	mutex_unlock(&session->lock);
	return error;
}

/*
 * Does not take the session's lock: Linux calls open() with the lock of all misc devices held, and
 * other devices must not wait for a session. An open() during the close of the last descriptor is
 * too late to keep the capture: release holds the session's lock from the count of 0 until the
 * capture is gone, and a later configure makes a new capture. An mmap() before that has a reference
 * to the old capture.
 */
void kbarman_session_open(void)
{
	atomic_inc(&kbarman_session.files);
}

void kbarman_session_release(struct file *file)
{
	struct kbarman_session *session = &kbarman_session;

	mutex_lock(&session->lock);
	if (session->owner == file) {
		stop_locked(session);
		session->owner = NULL;
	}
	if (atomic_dec_and_test(&session->files))
		discard(session);
	mutex_unlock(&session->lock);
}

/* ---- while it runs, and after ---- */

static struct kbarman_ring *ring_of(struct kbarman_session *session, u32 cpu)
{
	struct kbarman_ring *ring;

	if (!session->capture || cpu >= nr_cpu_ids || !cpu_possible(cpu))
		return NULL;
	ring = per_cpu_ptr(&kbarman_rings, cpu);
	/* The ring of a CPU that is coming online may not be ready. */
	return kbarman_ring_ready(ring) ? ring : NULL;
}

int kbarman_session_consume(struct file *file, u32 cpu, u64 position)
{
	struct kbarman_session *session = &kbarman_session;
	struct kbarman_ring *ring;
	int error = -EBUSY;

	mutex_lock(&session->lock);
	if (session->owner == file) {
		ring = ring_of(session, cpu);
		error = ring ? kbarman_ring_consume(ring, position) : -EINVAL;
	}
	mutex_unlock(&session->lock);
	return error;
}

void kbarman_session_query(struct file *file, struct kbarman_query *query)
{
	struct kbarman_session *session = &kbarman_session;
	struct kbarman_capture *capture;

	query->abi = KBARMAN_ABI;
	query->page_size = PAGE_SIZE;
	query->nr_cpus = nr_cpu_ids;
	query->clock_hz = kbarman_clock_hz();
	query->min_ring_bytes = KBARMAN_RING_MIN;
	query->max_ring_bytes = KBARMAN_RING_MAX;
	query->absent = kbarman_sources_absent();
	if (kbarman_clock_counts())
		query->features |= KBARMAN_FEATURE_RAW_CLOCK;
	query->features |= kbarman_maps_features() | kbarman_callchain_features |
			   KBARMAN_FEATURE_COUNTS;

	mutex_lock(&session->lock);
	if (kbarman_pmu_present(query->pmu_name, sizeof(query->pmu_name)))
		query->features |= KBARMAN_FEATURE_PMU;
	capture = session->capture;
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
		query->ring_bytes = capture->layout.ring_bytes;
		query->header_bytes = capture->layout.header_bytes;
		query->map_bytes = capture->layout.map_bytes;
		query->map_stride = capture->layout.map_bytes;
	}
	mutex_unlock(&session->lock);
}

static void add_ring_stats(struct kbarman_stats *stats, struct kbarman_ring *ring)
{
	u64 overwritten = ring->overwrite ? kbarman_ring_overwritten(ring) : 0;
	/*
	 * Read after `overwritten`, so that the result has no more overwritten than written
	 * records.
	 */
	u64 written = kbarman_counted(&ring->written);
	int reason;

	stats->written += written;
	stats->overwritten += min(overwritten, written);
	stats->bytes += READ_ONCE(ring->header->total_written);
	for (reason = 0; reason < KBARMAN_LOST_REASONS; reason++)
		stats->lost[reason] += kbarman_counted(&ring->lost[reason]);
	for (reason = 0; reason < KBARMAN_STOP_REASONS; reason++)
		stats->stopped[reason] += kbarman_pmu_stops(ring->cpu, reason);
}

int kbarman_session_stats(u32 cpu, struct kbarman_stats *stats)
{
	struct kbarman_session *session = &kbarman_session;
	struct kbarman_ring *ring;
	int error = -EINVAL;

	mutex_lock(&session->lock);
	if (!session->capture)
		goto out;
	if (cpu != KBARMAN_CPU_ALL) {
		ring = ring_of(session, cpu);
		if (!ring)
			goto out;
		add_ring_stats(stats, ring);
		stats->online = session->running && cpu_online(cpu);
	} else {
		for_each_cpu(cpu, session->cpus) {
			ring = ring_of(session, cpu);
			if (!ring)
				continue;
			add_ring_stats(stats, ring);
			stats->online += session->running && cpu_online(cpu);
		}
		kbarman_header_stats(session->capture, stats);
		stats->missed[KBARMAN_MISSED_COUNTER] += kbarman_pmu_unreadable();
	}
	error = 0;
out:
	mutex_unlock(&session->lock);
	return error;
}

int kbarman_session_clock(struct kbarman_clock *clock)
{
	struct kbarman_session *session = &kbarman_session;
	int error = -EINVAL;

	mutex_lock(&session->lock);
	if (session->capture) {
		clock->start = session->started;
		clock->stop = session->stopped;
		kbarman_clock_read(&clock->now);
		error = 0;
	}
	mutex_unlock(&session->lock);
	return error;
}

static int check_owner(const struct kbarman_session *session, const struct file *file)
{
	if (!session->capture)
		return -EINVAL;
	return session->owner == file ? 0 : -EBUSY;
}

int kbarman_session_check_owner(struct file *file)
{
	struct kbarman_session *session = &kbarman_session;
	int error;

	mutex_lock(&session->lock);
	error = check_owner(session, file);
	mutex_unlock(&session->lock);
	return error;
}

struct kbarman_capture *kbarman_session_capture(void)
{
	struct kbarman_session *session = &kbarman_session;
	struct kbarman_capture *capture;

	spin_lock(&capture_lock);
	capture = session->capture;
	if (capture)
		kbarman_capture_get(capture);
	spin_unlock(&capture_lock);
	return capture;
}

int kbarman_session_add_map(struct file *file, const struct kbarman_map_row *row,
			    const char *image)
{
	struct kbarman_session *session = &kbarman_session;
	int error;

	mutex_lock(&session->lock);
	error = check_owner(session, file);
	if (!error && !row->task_id && !session->kernel_addresses)
		error = -EPERM;
	if (!error)
		error = kbarman_tables_add_map(session->capture, session->started.timestamp,
					       KBARMAN_USER_ROOT,
					       row->task_id, row->base_address, row->length,
					       row->image_offset, image, row->image_length, 0);
	mutex_unlock(&session->lock);
	return error;
}

__poll_t kbarman_session_poll(struct file *file, struct poll_table_struct *wait)
{
	struct kbarman_session *session = &kbarman_session;
	__poll_t ready = 0;
	int cpu;

	kbarman_wake_arm(file, wait);
	mutex_lock(&session->lock);
	if (!session->running)
		ready = EPOLLIN | EPOLLRDNORM | EPOLLHUP;
	else
		for_each_cpu(cpu, session->cpus) {
			struct kbarman_ring *ring = ring_of(session, cpu);

			if (ring && kbarman_ring_fill(ring) >= session->config.watermark)
				ready = EPOLLIN | EPOLLRDNORM;
		}
	mutex_unlock(&session->lock);
	return ready;
}

/* ---- init and exit ---- */

int __init kbarman_session_init(void)
{
	int error;

	kbarman_maps_probe();
	kbarman_pmu_find();
	if (!zalloc_cpumask_var(&kbarman_session.cpus, GFP_KERNEL))
		return -ENOMEM;
	error = kbarman_sources_init();
	if (error)
		free_cpumask_var(kbarman_session.cpus);
	return error;
}

void kbarman_session_exit(void)
{
	kbarman_sources_exit();
	free_cpumask_var(kbarman_session.cpus);
}
