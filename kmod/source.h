/* SPDX-License-Identifier: GPL-2.0-only */
/* An event source. sessions/attach.c has the table of them. */
#ifndef KBARMAN_SOURCE_H
#define KBARMAN_SOURCE_H

#include "session.h"

struct kbarman_probe;

/*
 * Sources start in the order of the table in sessions/attach.c and stop in the reverse order.
 * Several sessions may run, so what a source remembers of one is in the session. Context of all
 * callbacks but cpu_goes(): a task that may sleep, session's lock held.
 *
 * What can fail comes first: cpu_prepare() for every CPU, which allocates what the CPU needs and
 * writes nothing, and then start(), which attaches the probes; without one all probes are attached
 * with kbarman_probe_data(), or one group of them. Up to here the capture is that of the
 * former recording, and must not change: the rings are closed, and a probe that writes into the
 * tables waits for begin(). A cpu_prepare() that fails has cpu_stop() called. If a start() fails,
 * stop() and end() are called for the sources before it that have a start() or probes.
 *
 * Then the rings and the tables are emptied. begin() is called with them empty, and cpu_start() then
 * for every CPU. A CPU that comes online later has its cpu_prepare() and its cpu_start() then. Up to
 * cpu_start() its ring is closed. When that of all sources is done, the ring opens, and here_begin()
 * is called there in the same interrupt.
 *
 * After stop() no probe of the source begins to run for this session, but some may still run. After
 * all sources' stop() an RCU grace period passes. When end() is called, no probe of any source and no
 * section with preemption off runs any more that has seen the session recording. end() frees what
 * these may have used. tell() is called when a session that ran has ended and all other facts are in
 * its capture. At the end cpu_last() is called for each CPU that records, for what takes
 * time and has a last record. Then all rings close. cpu_stop() is called for a
 * CPU that goes offline, and for each CPU that records before stop(). cpu_goes() is called on a CPU
 * that is about to go offline, in a task, in the order of stop(), without the session's lock, and
 * even if the source does not record. cpu_stop() follows, from a work item.
 */
struct kbarman_source {
	const char *name;		/* in kbarman.sources, if it is one of these */
	u32 bit;			/* KBARMAN_SOURCE_*; 0 = the source always runs */
	u32 absent;			/* bit in kbarman_query.absent if a probe is missing */
	struct kbarman_probe *probes;	/* looked for at module init; NULL = none */
	unsigned int nr_probes;
	unsigned int nr_groups;		/* of probes, all of one size: a session attaches one of them */
	unsigned int (*group)(const struct kbarman_session *session);	/* which; NULL: all probes */
	int (*start)(struct kbarman_session *session);
	void (*begin)(struct kbarman_session *session);
	void (*stop)(struct kbarman_session *session);
	void (*end)(struct kbarman_session *session);
	void (*tell)(struct kbarman_session *session);
	int (*cpu_prepare)(struct kbarman_session *session, int cpu, struct kbarman_start *report);
	void (*cpu_start)(struct kbarman_session *session, int cpu);
	void (*here_begin)(struct kbarman_cpu *here);		/* interrupts off */
	void (*cpu_last)(struct kbarman_session *session, int cpu);
	void (*cpu_stop)(struct kbarman_session *session, int cpu);
	void (*cpu_goes)(struct kbarman_session *session);	/* preemption off */
};

#endif /* KBARMAN_SOURCE_H */
