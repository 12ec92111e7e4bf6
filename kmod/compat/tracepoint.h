/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tracepoints by name: most are not exported to modules. Callbacks stay typed, by
 * the check_trace_callback_type_*() of the tracepoint's own header.
 */
#ifndef KBARMAN_COMPAT_TRACEPOINT_H
#define KBARMAN_COMPAT_TRACEPOINT_H

#include <linux/tracepoint.h>

struct kbarman_probe {
	const char *name;		/* of the tracepoint */
	void *function;
	bool early;			/* in front of those that are not */
	struct tracepoint *tracepoint;	/* found and attached; NULL = not. Nothing for
					 * the function, which may run before it is set
					 * and after it is cleared */
	const void *iterator;		/* what calls the function: set before it may run,
					 * and stays */
};

/* Attach all, or none. -ENOENT: this kernel has no such tracepoint. Context: task. */
int kbarman_probes_attach(struct kbarman_probe *probes, unsigned int count);

/* Detach those attached. On return none of them runs any more. Context: task. */
void kbarman_probes_detach(struct kbarman_probe *probes, unsigned int count);

#endif /* KBARMAN_COMPAT_TRACEPOINT_H */
