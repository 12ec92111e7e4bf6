/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Whether the records of a source that has entries and exits are written on a CPU.
 *
 * Linux patches the call sites of tracepoints one after the other. So while probes are attached or
 * detached, a CPU sees entries without exits and exits without entries. A CPU opens its gate when
 * all probes are attached, and closes it before the first one is detached, in an interrupt of its
 * own. So only what is under way at that moment has no entry, or no exit.
 */
#ifndef KBARMAN_GATES_H
#define KBARMAN_GATES_H

#include "session.h"

/*
 * All gates are closed while a session does not run. An error if @cpu is not online. Context: task,
 * session's lock held.
 */
int kbarman_gates_open(struct kbarman_session *session, int cpu, u32 source);
void kbarman_gates_close(struct kbarman_session *session, int cpu, u32 source);

#endif /* KBARMAN_GATES_H */
