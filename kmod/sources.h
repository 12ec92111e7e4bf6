/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The event sources of a session, and the CPUs on which they run: the session's CPUs that are
 * online. Sources follow CPUs that come and go.
 */
#ifndef KBARMAN_SOURCES_H
#define KBARMAN_SOURCES_H

#include "session.h"

/*
 * An event source. Sources start in the order of the table in sources.c and stop in the reverse
 * order. Context of all callbacks but cpu_goes(): a task that may sleep, session's lock held.
 *
 * start() is called before cpu_start() of any CPU, with everything allocated. When stop() returns,
 * no probe of the source runs any more. cpu_start() is called for every CPU that records: when the
 * session starts, and when a CPU comes online later. cpu_stop() is called for a CPU that goes
 * offline, and for each CPU that records before stop(). cpu_goes() is called on a CPU that is about
 * to go offline, in a task, in the order of stop(), without the session's lock, and even if the
 * source does not record. cpu_stop() follows, from a work item.
 */
struct kbarman_source {
	const char *name;
	u32 bit;			/* KBARMAN_SOURCE_*; 0 = the source always runs */
	u32 absent;			/* bit in kbarman_query.absent if a probe is missing */
	const struct kbarman_probe *probes;	/* looked for at module init; NULL = none */
	unsigned int nr_probes;
	int (*start)(struct kbarman_session *session);
	void (*stop)(struct kbarman_session *session);
	int (*cpu_start)(struct kbarman_session *session, int cpu, struct kbarman_start *report);
	void (*cpu_stop)(struct kbarman_session *session, int cpu);
	void (*cpu_goes)(void);
};

extern const struct kbarman_source kbarman_source_sched, kbarman_source_idle,
	kbarman_source_pmu, kbarman_source_counts, kbarman_source_tasks,
	kbarman_source_maps, kbarman_source_marker;

/* Write the fact that says what prev_state of a task switch means. */
void kbarman_sched_tell_states(struct kbarman_capture *capture);

/* kbarman_query.absent, as found at module init. Context: any. */
u32 kbarman_sources_absent(void);

int kbarman_sources_init(void);
void kbarman_sources_exit(void);

/* Context: task, session's lock held. Call attach before start, and detach after stop. */
int kbarman_sources_attach(struct kbarman_session *session);
void kbarman_sources_detach(struct kbarman_session *session);
/*
 * A CPU that goes offline during the call is not an error. A CPU that comes online during the call
 * is added later.
 */
int kbarman_sources_start(struct kbarman_session *session, struct kbarman_start *report);
void kbarman_sources_stop(struct kbarman_session *session);

#endif /* KBARMAN_SOURCES_H */
