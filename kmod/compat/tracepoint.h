/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Looks up tracepoints by name, because most are not exported to modules. The function
 * check_trace_callback_type_*() of the tracepoint's own header checks the type of a callback. It
 * has to be exactly that type: a kernel with kCFI refuses to call anything else.
 *
 * A probe runs with preemption on, unless the place of its tracepoint forbids it: since 7.x Linux
 * protects its probes by SRCU, and not by switching preemption off. Probes that use data of their
 * CPU, or that somebody waits for with synchronize_rcu(), switch it off themselves.
 */
#ifndef KBARMAN_COMPAT_TRACEPOINT_H
#define KBARMAN_COMPAT_TRACEPOINT_H

#include <linux/tracepoint.h>

struct kbarman_probe {
	const char *name;		/* of the tracepoint */
	void *function;
	bool early;			/* call `function` before those of other probes */
	struct tracepoint *tracepoint;	/* the tracepoint to which the function is attached; NULL =
					 * none. The function must not use it: the function may run
					 * before it is set and after it is cleared */
	const void *iterator;		/* the kernel's function that calls `function`. Set before
					 * `function` can run, never cleared */
};

/* True if this kernel has all these tracepoints. Context: task. */
bool kbarman_probes_exist(const struct kbarman_probe *probes, unsigned int count);

/* Attach all, or none. -ENOENT if this kernel has no such tracepoint. Context: task. */
int kbarman_probes_attach(struct kbarman_probe *probes, unsigned int count);

/*
 * Detach those that are attached. On return none of them runs any more. This waits for nothing
 * else: since 7.x it is no RCU grace period. Sources that need one for their kprobes, overflow
 * handlers or callers wait for it in their own stop(). Context: task.
 */
void kbarman_probes_detach(struct kbarman_probe *probes, unsigned int count);

#endif /* KBARMAN_COMPAT_TRACEPOINT_H */
