/* SPDX-License-Identifier: GPL-2.0-only */
/* The rings of a session. Context, unless stated: task, session's lock held. */
#ifndef KBARMAN_RINGS_H
#define KBARMAN_RINGS_H

#include <linux/types.h>

struct kbarman_ring;
struct kbarman_session;

/* Give @cpu an empty ring, and memory for its call chains. 0, -ENOMEM or -EDQUOT. */
int kbarman_rings_add(struct kbarman_session *session, int cpu);

/* Empty all rings, which are closed. */
void kbarman_rings_empty(struct kbarman_session *session);
void kbarman_rings_forget(struct kbarman_session *session);

/*
 * Close all rings, each on its CPU: none has a record that is later than the end of the call.
 * Context: as above, preemption may be off.
 */
void kbarman_rings_close(struct kbarman_session *session);

/* Complete what a reader sees of the rings. No writer is active any more. */
void kbarman_rings_settle(struct kbarman_session *session);

/* No record goes the short way. Context: one CPU online, interrupts off. */
void kbarman_rings_close_short(struct kbarman_session *session);

/* The ring of @cpu, or NULL if there is none. @cpu may be any number. */
struct kbarman_ring *kbarman_rings_find(struct kbarman_session *session, u32 cpu);

/*
 * Write whose maps the rings are behind them. Context: session's lock held; the session has its number.
 */
void kbarman_rings_sign(struct kbarman_session *session);

#endif /* KBARMAN_RINGS_H */
