/* SPDX-License-Identifier: MIT */
/*
 * Switches and wakeups of a CPU in Perfetto's compact form: lists of numbers, and each name once. Only
 * this form can tell trace_processor that an interrupt woke. trace_processor takes who leaves the CPU,
 * and who wakes, from the switch before.
 */
#ifndef KB_LIB_EXPORT_VIEWERS_PERFETTO_SCHED_H
#define KB_LIB_EXPORT_VIEWERS_PERFETTO_SCHED_H

#include <stdbool.h>

#include "analysis/facts/capture_names.h"

#define KB_PERFETTO_SCHED_MAX	256U	/* switches; and as many wakeups */
#define KB_PERFETTO_SCHED_NAMES	4096U
#define KB_PERFETTO_SCHED_KNOWN	64U
#define KB_PERFETTO_SCHED	(KB_PERFETTO_SCHED_NAMES + 64 * KB_PERFETTO_SCHED_MAX) /* bytes at most */

enum kb_perfetto_list {
	KB_SWITCH_TIMES,	/* each is the difference to the one before */
	KB_SWITCH_STATES,
	KB_SWITCH_TASKS,
	KB_SWITCH_PRIORITIES,	/* captures have none: 0 */
	KB_SWITCH_NAMES,
	KB_WAKING_TIMES,
	KB_WAKING_TASKS,
	KB_WAKING_CPUS,
	KB_WAKING_PRIORITIES,
	KB_WAKING_NAMES,
	KB_WAKING_FLAGS,
	KB_PERFETTO_LISTS
};

/* All zero: there is none. */
struct kb_perfetto_sched {
	uint64_t lists[KB_PERFETTO_LISTS][KB_PERFETTO_SCHED_MAX];
	uint32_t switches, wakings;	/* their numbers */
	uint64_t last_switch, last_waking;
	struct {			/* by task: which one of them was named, as what, where */
		const char *name;
		uint32_t task, number;
	} known[KB_PERFETTO_SCHED_KNOWN];
	uint32_t nr_names, length;
	uint8_t names[KB_PERFETTO_SCHED_NAMES];	/* as fields, `length` bytes */
};

/* Whether there may be no room for another one. */
bool kb_perfetto_sched_full(const struct kb_perfetto_sched *sched);

/* A switch to @task. @state: in which the task before left the CPU. */
void kb_perfetto_add_switch(struct kb_perfetto_sched *sched, uint64_t time, uint32_t state,
			    uint32_t task, const struct kb_task_name *name);

/* A wakeup of @task. @flags: those of the trace event, KB_PERFETTO_IRQ or KB_PERFETTO_SOFTIRQ. */
void kb_perfetto_add_waking(struct kb_perfetto_sched *sched, uint64_t time, uint32_t flags,
			    uint32_t task, const struct kb_task_name *name, uint32_t cpu);

void kb_perfetto_forget_sched(struct kb_perfetto_sched *sched);

/* Write all of them as a field of a bundle, and forget them. Returns the place behind. */
uint8_t *kb_perfetto_put_sched(uint8_t *at, struct kb_perfetto_sched *sched);

#endif
