/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Looks up tracepoints by name, because most are not exported to modules. The function
 * check_trace_callback_type_*() of the tracepoint's own header checks the type of a callback.
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

/* Attach all, or none. -ENOENT if this kernel has no such tracepoint. Context: task. */
int kbarman_probes_attach(struct kbarman_probe *probes, unsigned int count);

/* Detach those that are attached. On return none of them runs any more. Context: task. */
void kbarman_probes_detach(struct kbarman_probe *probes, unsigned int count);

#endif /* KBARMAN_COMPAT_TRACEPOINT_H */
