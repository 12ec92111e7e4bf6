/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Suspends of the machine during a session: to idle, to memory, or to disk. The session records
 * again after the suspend, and CPUs are followed as in any hotplug. Some clocks stand still during
 * a suspend, so the time of the suspend is left out when clocks are compared.
 */
#ifndef KBARMAN_SUSPEND_H
#define KBARMAN_SUSPEND_H

struct kbarman_session;

/*
 * The session has started, and session->started is set; it has stopped, and session->stopped is
 * set. Context: task, session's lock held.
 */
void kbarman_suspend_session_starts(struct kbarman_session *session);
void kbarman_suspend_session_stops(struct kbarman_session *session);

int kbarman_suspend_init(void);
void kbarman_suspend_exit(void);

#endif /* KBARMAN_SUSPEND_H */
