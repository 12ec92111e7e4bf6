/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a session wants and owns. This header has no functions. It is below all that works on a
 * session: sources, chains and spaces know this header and not each other's callers.
 * In sessions/, calls.h has what is done with a session as a whole, and sessions.h says which there
 * are.
 */
#ifndef KBARMAN_SESSION_H
#define KBARMAN_SESSION_H

#include <linux/atomic.h>
#include <linux/cpumask.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/percpu.h>
#include <linux/sched.h>
#include <linux/uidgid.h>
#include <linux/workqueue.h>
#include <asm/local64.h>

#include "ring/clock.h"
#include "ring/ring.h"
#include "ring/wake.h"
#include "uapi/kbarman.h"

#define KBARMAN_SLOTS	32	/* no more sessions than this */
#define KBARMAN_FAULT_EVENTS	3	/* of perf, on each CPU: a fault begins, ends as minor, as major */

struct file;
struct kbarman_capture;
struct kbarman_fault;
struct kbarman_maps;
struct kbarman_request;
struct perf_event;
struct pid;

/* The counters of one CPU: pmu/pmu.c. */
struct kbarman_counters {
	struct perf_event *events[BM_MAX_PMU_COUNTERS];
	unsigned int nr;	/* number of events created */
	bool ready;		/* all events of the CPU exist. Set with release after the last one
				 * is created, cleared before the first one is released */
	u32 ended;		/* a bit for each event that is being switched off: if it is off
				 * already, it has counted to its end */
	u32 resting;		/* a bit for each event that does not count now, because others
				 * have their turn. Changed by the CPU, with interrupts off */
	bool published;		/* the capture has the entry of this CPU. The entry, and the next
				 * two fields, do not change until the session ends */
	unsigned int values;	/* of a sample: the CPU's counters */
	u8 wanted[BM_MAX_PMU_COUNTERS];	/* the event of the session that each counter counts */
	u8 turn[BM_MAX_PMU_COUNTERS];	/* in which it counts, from 1 on; 0: all the time */
	/* Used by the owning CPU only, at any level up to NMI. */
	local64_t last[BM_MAX_PMU_COUNTERS];	/* counts at the last reading */
	local64_t unrecorded[BM_MAX_PMU_COUNTERS];	/* counts that are in no record */
	local_t unreadable;
	u32 told;		/* what the ring says about the first counter: 0: it counts; else
				 * enum kbarman_stop + 1 */
	u64 bookmarked;		/* timestamp of the last bookmark of a stop */
	local_t stops[KBARMAN_STOP_REASONS];
	/* What perf says of events that are released: since counters_settle(), and before. */
	u64 released[BM_MAX_PMU_COUNTERS], counted[BM_MAX_PMU_COUNTERS];
	bool unsettled;		/* `released` and `last` wait for an RCU grace period */
};

/* Memory for the call chains of one CPU: stacks/callchain.c. The owning CPU's, but for `bytes`. */
struct kbarman_chain_memory {
	unsigned int depth;	/* pieces in use. An interrupt leaves it as it was */
	void *bytes;		/* the pieces, NULL = none */
	struct kbarman_known_chains *known;	/* behind them: of the outermost level; NULL = none */
};

/* The last state of a CPU that the probe saw or its ring holds: sources/idle.c. */
enum kbarman_idle_told {
	KBARMAN_IDLE_TOLD_NOTHING,
	KBARMAN_IDLE_TOLD_OUT,
	KBARMAN_IDLE_TOLD_IN,
};

/* What a session has of one CPU. */
struct kbarman_cpu {
	struct kbarman_ring ring;	/* first: the address of all of these is that of the rings,
					 * which is what the probe of task switches is given */
	struct kbarman_session *session;
	struct kbarman_ring_page *pages;	/* for kbarman_ring_init(); maps do not show them */
	struct kbarman_chain_memory chains;
	enum kbarman_idle_told idle_told;	/* written by the CPU; with interrupts off while
					 * the ring is closed */
	bool told_offline;	/* the ring says that the CPU is offline, and its counters do not
				 * say more. The CPU's, with interrupts off */
	struct perf_event *ticker;	/* reads the counters periodically; NULL = none */
	struct perf_event *faults[KBARMAN_FAULT_EVENTS];	/* sources/faults.c; NULL = none */
	struct kbarman_counters counters;
};

/* Suspends of the machine while the session records: sessions/suspend.c, under that file's lock. */
struct kbarman_sleeps {
	struct list_head list;
	struct kbarman_clock_pair before;	/* clocks when the suspend began, or when the
						 * session started if that was later */
	struct kbarman_clock_sleep asleep;	/* time that the machine was suspended since the
						 * start */
	unsigned int count;
};

/* Whose turn it is to be counted: pmu/turns.c. */
struct kbarman_turns {
	u8 nr;				/* the highest one; 0: there are no turns */
	u8 now;				/* 1 to `nr`; 0: nobody had a turn yet */
	u64 given;			/* number of turns since the start */
	u64 since;			/* timestamp of the last one */
};

/* Who has configured a session. */
struct kbarman_owner {
	struct pid *pid;		/* the process, with a reference; NULL = nobody */
	kuid_t uid;			/* of the opener of the descriptor */
	u32 user;			/* the same from kbarman_user_of(): who pays */
	char comm[TASK_COMM_LEN];
};

/*
 * Lock order: `lock` is taken before cpu_hotplug_lock. Attaching a tracepoint and creating a perf
 * event take cpu_hotplug_lock, so no source is called with cpu_hotplug_lock held.
 */
struct kbarman_session {
	/* Of sessions/sessions.c, under its lock. */
	struct kref ref;		/* its slot, its owner, and calls that use the session */
	unsigned int slot;		/* below KBARMAN_SLOTS. Constant */
	u64 id;				/* number of the configuration; the newest session has the
					 * highest one; 0: not configured. Changed under `lock`,
					 * too */
	bool left;			/* the owner has gone */
	unsigned int choosers;		/* descriptors that have chosen the session */

	struct mutex lock;		/* protects all fields that say nothing else */
	struct file *owner;		/* the descriptor that configured; NULL = no owner */
	struct kbarman_owner who;	/* the same, for people */
	u64 recording_id;		/* as the UAPI header says; 0 since the configure */
	bool running;
	bool going;			/* it runs, or its stop is not complete: for poll(), which
					 * takes no lock */
	bool kernel_addresses;		/* the owner may see kernel addresses (CAP_SYSLOG), */
	bool peeks;			/* ... and the locks of tasks of others (CAP_SYS_PTRACE) */
	bool fallback;			/* a CPU counts an event with KBARMAN_EVENT_FALLBACK */
	bool unsteady;			/* Linux found that the counter behind the timestamps can't
					 * be trusted; set at stop */

	/*
	 * As configured. Constant while the session runs, so probes read these fields without
	 * `lock`.
	 */
	struct kbarman_configure config;	/* with defaults filled in and sizes rounded */
	struct kbarman_event *events;	/* [config.nr_events] */
	cpumask_var_t cpus;
	u32 chain_parts;		/* KBARMAN_CONFIGURE_CHAIN_* of which chains consist */
	unsigned long *tasks;		/* bit = thread id: record this thread; NULL = record all.
					 * Start and the fork probe change bits, all others only
					 * test them */
	struct pid **pids;		/* [config.nr_pids], with references */
	struct kbarman_capture *capture;
	/*
	 * Protects `capture` for readers without `lock`. mmap() needs the capture under mmap_lock,
	 * and `lock` comes before mmap_lock. A page fault takes neither: the file of the mapping
	 * holds the capture.
	 */
	spinlock_t capture_lock;

	struct kbarman_clock_pair started, stopped;
	struct kbarman_sleeps sleeps;

	struct kbarman_cpu __percpu *each;	/* of every possible CPU */
	struct kbarman_wake *wake;	/* of the slot. Constant */

	/* CPUs that come and go: sessions/cpus.c. */
	struct list_head running_list;	/* RCU */
	cpumask_var_t recording;	/* CPUs that record now */
	cpumask_var_t gone;		/* CPUs that have gone offline since the last look, even if
					 * they are online again: their perf events are lost.
					 * Changed without `lock` */
	struct work_struct cpus_changed;

	bool tables_begun;		/* the capture's tables are those of this recording:
					 * sources/tasks.c */

	struct delayed_work counters_look;	/* pmu/pmu.c */
	struct kbarman_turns turns;
	bool counting;			/* counters are read between overflows: sources/counts.c.
					 * Written under `lock` */
	u64 *syscalls;			/* sources/syscalls.c; NULL = system calls are not recorded */
	struct kbarman_fault *faults;	/* sources/faults.c; NULL = page faults are not recorded */
	struct kbarman_request *requests;	/* sources/block.c; NULL = requests are not recorded */
	struct kbarman_maps *maps;	/* maps/maps.c; NULL = does not run */
	struct kbarman_maps *maps_made;	/* the same, from before it runs on */
	struct list_head marks_list;	/* marks/marks.c; RCU */
	u32 marks_recording;		/* number of the recording that began with this session; 0:
					 * it does not record marks. Under marks_lock there */
};

#endif /* KBARMAN_SESSION_H */
