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
	bool optional;			/* without such a tracepoint, do without this probe */
	struct tracepoint *tracepoint;	/* set by kbarman_probes_find(). NULL = this kernel has
					 * none of that name */
};

/* The name and the function of a probe, which is checked to be one of that tracepoint. */
#define KBARMAN_PROBE(tracepoint, probe)							\
	.name = #tracepoint,									\
	.function = (void *)(probe) +								\
		    0 * sizeof((check_trace_callback_type_##tracepoint(probe), 0))

/*
 * Look for the tracepoints. True if this kernel has all of them but optional ones. Context: task,
 * at module init.
 */
bool kbarman_probes_find(struct kbarman_probe *probes, unsigned int count);

/*
 * Attach all, or none. @data is the first argument of the functions. Several callers may attach
 * the same probes, each with its own @data. -ENOENT if this kernel lacks a tracepoint that is not
 * optional. Context: task.
 */
int kbarman_probes_attach(const struct kbarman_probe *probes, unsigned int count, void *data);

/*
 * Detach all, which were attached with the same @data. Some may run with it until
 * kbarman_probes_wait() returns. Context: task.
 */
void kbarman_probes_detach(const struct kbarman_probe *probes, unsigned int count, void *data);

/*
 * Wait for all probes that are detached, and for an RCU grace period, as kprobes, overflow handlers
 * and callers need: what Linux waits for after its tracepoints is none since 7.x. Context: task.
 */
void kbarman_probes_wait(void);

#endif /* KBARMAN_COMPAT_TRACEPOINT_H */
