/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The machine sleeps while a session runs, for seconds or for a night: suspend to idle or
 * to memory, hibernation. What is recorded goes on behind it as if nothing had been, CPUs
 * are followed as in any hotplug; but of the clocks some stood still, and what they say
 * together has to do without that time.
 */
#ifndef KBARMAN_SUSPEND_H
#define KBARMAN_SUSPEND_H

struct kbarman_session;

/* The session has started; it has stopped: both clock pairs are taken. Under its lock. */
void kbarman_suspend_session_starts(struct kbarman_session *session);
void kbarman_suspend_session_stops(struct kbarman_session *session);

int kbarman_suspend_init(void);
void kbarman_suspend_exit(void);

#endif /* KBARMAN_SUSPEND_H */
