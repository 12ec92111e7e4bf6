/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The event sources of a session, and the CPUs that they run on: those of the session that
 * are online, as they come and go.
 */
#ifndef KBARMAN_SOURCES_H
#define KBARMAN_SOURCES_H

#include "session.h"

/*
 * An event source. Starts in the order of the table in sources.c and stops in the
 * reverse. start() is called with the session's lock held and everything
 * allocated, before any CPU; when stop() returns, no probe of it runs any
 * more. cpu_start() runs for every CPU that records, at start and when it comes
 * online later, in a task that may sleep; cpu_stop() when it goes offline and
 * before stop(). cpu_goes() runs on a CPU that is about to go offline, in a task, in the order of
 * stop(), without the session's lock and whether or not the source records: cpu_stop() follows
 * when it has gone.
 */
struct kbarman_source {
	const char *name;
	u32 bit;			/* KBARMAN_SOURCE_*; 0 = always */
	int (*start)(struct kbarman_session *session);
	void (*stop)(struct kbarman_session *session);
	int (*cpu_start)(struct kbarman_session *session, int cpu, struct kbarman_start *report);
	void (*cpu_stop)(struct kbarman_session *session, int cpu);
	void (*cpu_goes)(void);
};

extern const struct kbarman_source kbarman_source_sched, kbarman_source_idle,
	kbarman_source_pmu, kbarman_source_counts, kbarman_source_tasks,
	kbarman_source_maps, kbarman_source_marker;

/* The fact that says what prev_state of a task switch means. */
void kbarman_sched_tell_states(struct kbarman_capture *capture);

int kbarman_sources_init(void);
void kbarman_sources_exit(void);

/* All of these under the session's lock; attach before start, detach after stop. */
int kbarman_sources_attach(struct kbarman_session *session);
void kbarman_sources_detach(struct kbarman_session *session);
/* A CPU that goes meanwhile is no error; one that comes is taken in later. */
int kbarman_sources_start(struct kbarman_session *session, struct kbarman_start *report);
void kbarman_sources_stop(struct kbarman_session *session);

#endif /* KBARMAN_SOURCES_H */
