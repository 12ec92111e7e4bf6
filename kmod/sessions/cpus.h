/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The CPUs on which sessions record: those of the session that are online. Sessions follow CPUs
 * that come and go.
 */
#ifndef KBARMAN_CPUS_H
#define KBARMAN_CPUS_H

#include <linux/list.h>

struct kbarman_session;
struct kbarman_start;

/* Sessions that record, or begin or cease to. RCU. */
extern struct list_head kbarman_running_sessions;

/* For a session that is new. */
void kbarman_cpus_init_session(struct kbarman_session *session);

/*
 * Let the session follow CPUs from now on, and prepare those that are online: a ring for each that
 * has none yet, and its counters. -ENODEV if no CPU is online; what else fails is in @report. A CPU
 * that goes offline during the call is not an error, and one that comes online is added once the
 * session runs. Nothing of the former recording changes. If it fails, or what comes before the start
 * does, kbarman_cpus_cancel() undoes it. Context: task, session's lock held, it does not run.
 */
int kbarman_cpus_prepare(struct kbarman_session *session, struct kbarman_start *report);
void kbarman_cpus_cancel(struct kbarman_session *session);

/* The CPUs tell the empty capture what it needs of them. Context: task, session's lock held. */
void kbarman_cpus_start(struct kbarman_session *session);

/* They record from here on: their rings open, and say what runs. */
void kbarman_cpus_begin(struct kbarman_session *session);

/* What has a last record writes it. Then the rings close, and then the CPUs stop. */
void kbarman_cpus_last(struct kbarman_session *session);
void kbarman_cpus_stop(struct kbarman_session *session);

int kbarman_cpus_init(void);
void kbarman_cpus_exit(void);

#endif /* KBARMAN_CPUS_H */
