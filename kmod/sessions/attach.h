/* SPDX-License-Identifier: GPL-2.0-only */
/* The event sources of a session: source.h says what a source is. */
#ifndef KBARMAN_ATTACH_H
#define KBARMAN_ATTACH_H

#include <linux/types.h>

struct kbarman_cpu;
struct kbarman_session;
struct kbarman_start;

/* Look for what the sources need of this kernel. */
int kbarman_sources_init(void);
void kbarman_sources_exit(void);

/* kbarman_query.absent, as found at module init. Context: any. */
u32 kbarman_sources_absent(void);

/*
 * Write into the capture which sources of KBARMAN_SOURCE_DETAILS the session has. Context: task,
 * session's lock held.
 */
void kbarman_sources_tell(const struct kbarman_session *session);

/*
 * In this order, as source.h says: attach, which may fail, begin, the start of the CPUs, and detach
 * after the stop of the last one. Context: task, session's lock held.
 */
int kbarman_sources_attach(struct kbarman_session *session);
void kbarman_sources_begin(struct kbarman_session *session);
void kbarman_sources_detach(struct kbarman_session *session);

/*
 * Write what the sources say at the end into the capture. Context: task, session's lock held, after
 * detach.
 */
void kbarman_sources_tell_ends(struct kbarman_session *session);

/* If prepare fails, @report says for what, and nothing is left of it. Context: as above. */
int kbarman_sources_prepare_cpu(struct kbarman_session *session, int cpu,
				struct kbarman_start *report);
void kbarman_sources_start_cpu(struct kbarman_session *session, int cpu);
void kbarman_sources_stop_cpu(struct kbarman_session *session, int cpu);

/* The ring of this CPU has opened. Context: interrupts off. */
void kbarman_sources_begin_here(struct kbarman_cpu *here);

/* The CPU's ring closes soon. Context: task, session's lock held. */
void kbarman_sources_last_cpu(struct kbarman_session *session, int cpu);

/* This CPU goes offline. Context: task, preemption off, without the session's lock. */
void kbarman_sources_cpu_goes(struct kbarman_session *session);

#endif /* KBARMAN_ATTACH_H */
