/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One capture: configure, start, stop. There is one session, so the rings are
 * plain per-CPU variables, which is the cheapest way for a probe to find its own.
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
 * `lock` protects all of it. It comes before cpu_hotplug_lock, which the attaching of
 * a tracepoint and the making of an event take: no source is called under that.
 */
struct kbarman_session {
	struct mutex lock;		/* of all of this */
	atomic_t files;			/* open; with the last one the capture goes. Counted
					 * up without the lock */
	struct file *owner;		/* NULL = free */
	u64 id;				/* counts the configurations */
	bool running;
	bool kernel_addresses;		/* the owner may see them (CAP_SYSLOG) */
	bool fallback;			/* sampled by cpu-clock for want of a PMU */
	bool unsteady;			/* its clock was not to be trusted in the end */

	/* As configured; constant while running, so probes read them as they are. */
	struct kbarman_configure config;	/* with sizes as they came out */
	struct kbarman_event events[BM_MAX_PMU_COUNTERS];
	cpumask_var_t cpus;
	unsigned long *tasks;		/* bit = thread id: record it; NULL = all. Start
					 * sets, the fork probe sets and clears, all
					 * others test */
	struct pid **pids;		/* [config.nr_pids] */
	struct kbarman_capture *capture;

	struct kbarman_clock_pair started, stopped;
	struct kbarman_clock_sleep asleep;	/* since the start */
	unsigned int sleeps;
};

extern struct kbarman_session kbarman_session;
DECLARE_PER_CPU(struct kbarman_ring, kbarman_rings);

/* This CPU's ring, ready or not. Preemption off. */
static __always_inline struct kbarman_ring *kbarman_own_ring(void)
{
	return this_cpu_ptr(&kbarman_rings);
}

/* The same, if this CPU records: its ring is there, and it is in session.cpus. */
static __always_inline struct kbarman_ring *kbarman_this_ring(void)
{
	struct kbarman_ring *ring = kbarman_own_ring();

	return likely(kbarman_ring_ready(ring)) ? ring : NULL;
}

/* The session records thread @task_id. */
static __always_inline bool kbarman_wants(u32 task_id)
{
	const unsigned long *tasks = kbarman_session.tasks;

	return likely(!tasks) || test_bit(task_id, tasks);
}

int kbarman_session_init(void);
void kbarman_session_exit(void);

/* The ioctls, arguments checked but for what the session alone can know. */
int kbarman_session_configure(struct file *file, struct kbarman_configure *config,
			      const struct kbarman_event *events, const struct cpumask *cpus,
			      const u32 *pids);
int kbarman_session_start(struct file *file, struct kbarman_start *report);
int kbarman_session_stop(struct file *file);
int kbarman_session_consume(struct file *file, u32 cpu, u64 position);
void kbarman_session_query(struct file *file, struct kbarman_query *query);
int kbarman_session_stats(u32 cpu, struct kbarman_stats *stats);
/* 0 if @file may change the session, else -EINVAL (none) or -EBUSY. */
int kbarman_session_check_owner(struct file *file);
int kbarman_session_add_map(struct file *file, const struct kbarman_map_row *row,
			    const char *image);
int kbarman_session_clock(struct kbarman_clock *clock);

/* A ring for @cpu, empty. Under the lock. */
int kbarman_session_add_ring(struct kbarman_session *session, int cpu);

/* The capture as it is now, with a reference, or NULL before the first configure. */
struct kbarman_capture *kbarman_session_capture(void);

/* EPOLL* as the header says. */
__poll_t kbarman_session_poll(struct file *file, struct poll_table_struct *wait);

/* A descriptor comes; it goes: stop the session if it is the owner's. */
void kbarman_session_open(void);
void kbarman_session_release(struct file *file);

#endif /* KBARMAN_SESSION_H */
