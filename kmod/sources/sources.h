/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * sources/: what the tracepoints of the kernel tell: task switches, idling, wakeups, migrations,
 * interrupts, frequencies, system calls, faults, block requests, tasks that come and go; and the
 * counters between their overflows. Each file is one source (source.h). Samples, mappings and marks
 * have folders of their own.
 */
#ifndef KBARMAN_SOURCES_H
#define KBARMAN_SOURCES_H

#include "source.h"

struct kbarman_capture;

extern const struct kbarman_source kbarman_source_sched, kbarman_source_idle,
	kbarman_source_counts, kbarman_source_tasks, kbarman_source_wake,
	kbarman_source_migrate, kbarman_source_irq, kbarman_source_softirq,
	kbarman_source_freq, kbarman_source_syscalls, kbarman_source_faults,
	kbarman_source_block;

/* Write the fact that says what prev_state of a task switch means. */
void kbarman_sched_tell_states(struct kbarman_capture *capture);

#endif /* KBARMAN_SOURCES_H */
