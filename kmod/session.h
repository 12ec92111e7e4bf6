/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One capture: configure, start, stop. Only one session exists, so the rings are plain per-CPU
 * variables. This is the cheapest way for a probe to find the ring of its CPU.
 */
#ifndef KBARMAN_SESSION_H
#define KBARMAN_SESSION_H

#include <linux/atomic.h>
#include <linux/cpumask.h>
#include <linux/fs.h>
#include <linux/mutex.h>
#include <linux/percpu.h>

#include "clock.h"
#include "header.h"
#include "ring.h"

/*
 * Lock order: `lock` is taken before cpu_hotplug_lock. Attaching a tracepoint and creating a perf
 * event take cpu_hotplug_lock, so no source is called with cpu_hotplug_lock held.
 */
struct kbarman_session {
	struct mutex lock;		/* protects all fields */
	atomic_t files;			/* number of open descriptors. The capture is freed with the
					 * last one. open() increments without `lock` */
	struct file *owner;		/* the descriptor that configured; NULL = no owner */
	u64 id;				/* number of configurations so far */
	bool running;
	bool kernel_addresses;		/* the owner may see kernel addresses (CAP_SYSLOG) */
	bool fallback;			/* cpu-clock samples, because there is no PMU */
	bool unsteady;			/* Linux found that the counter behind the timestamps can't
					 * be trusted; set at stop */

	/*
	 * As configured. Constant while the session runs, so probes read these fields without
	 * `lock`.
	 */
	struct kbarman_configure config;	/* with defaults filled in and sizes rounded */
	struct kbarman_event events[BM_MAX_PMU_COUNTERS];
	cpumask_var_t cpus;
	unsigned long *tasks;		/* bit = thread id: record this thread; NULL = record all.
					 * Start and the fork probe change bits, all others only
					 * test them */
	struct pid **pids;		/* [config.nr_pids], with references */
	struct kbarman_capture *capture;

	struct kbarman_clock_pair started, stopped;
	struct kbarman_clock_sleep asleep;	/* time that the machine was suspended since the
						 * start */
	unsigned int sleeps;
};

extern struct kbarman_session kbarman_session;
DECLARE_PER_CPU(struct kbarman_ring, kbarman_rings);

/* This CPU's ring. It may not be ready. Context: preemption off. */
static __always_inline struct kbarman_ring *kbarman_own_ring(void)
{
	return this_cpu_ptr(&kbarman_rings);
}

/*
 * This CPU's ring, or NULL if this CPU has none. A CPU of session.cpus has a ring, unless it came
 * online later and there was no memory for one. Context: preemption off.
 */
static __always_inline struct kbarman_ring *kbarman_this_ring(void)
{
	struct kbarman_ring *ring = kbarman_own_ring();

	return likely(kbarman_ring_ready(ring)) ? ring : NULL;
}

/* True if the session records thread @task_id. Context: any. */
static __always_inline bool kbarman_wants(u32 task_id)
{
	const unsigned long *tasks = kbarman_session.tasks;

	return likely(!tasks) || test_bit(task_id, tasks);
}

int kbarman_session_init(void);
void kbarman_session_exit(void);

/*
 * The ioctls. The caller has checked the arguments, except for what depends on the session's state.
 * Context: task, without the session's lock.
 */
int kbarman_session_configure(struct file *file, struct kbarman_configure *config,
			      const struct kbarman_event *events, const struct cpumask *cpus,
			      const u32 *pids);
int kbarman_session_start(struct file *file, struct kbarman_start *report);
int kbarman_session_stop(struct file *file);
int kbarman_session_consume(struct file *file, u32 cpu, u64 position);
void kbarman_session_query(struct file *file, struct kbarman_query *query);
int kbarman_session_stats(u32 cpu, struct kbarman_stats *stats);
/* 0 if @file may change the session, -EINVAL if none is configured, else -EBUSY. */
int kbarman_session_check_owner(struct file *file);
int kbarman_session_add_map(struct file *file, const struct kbarman_map_row *row,
			    const char *image);
int kbarman_session_clock(struct kbarman_clock *clock);

/* Give @cpu an empty ring. 0 or -ENOMEM. Context: task, session's lock held. */
int kbarman_session_add_ring(struct kbarman_session *session, int cpu);

/*
 * The current capture with a reference, or NULL if none is configured. Context: task, with or
 * without mmap_lock and the session's lock.
 */
struct kbarman_capture *kbarman_session_capture(void);

/* EPOLL* as the UAPI header says. */
__poll_t kbarman_session_poll(struct file *file, struct poll_table_struct *wait);

/*
 * A descriptor is opened; a descriptor is closed. If the closed one owns the session, the session
 * stops.
 */
void kbarman_session_open(void);
void kbarman_session_release(struct file *file);

#endif /* KBARMAN_SESSION_H */
