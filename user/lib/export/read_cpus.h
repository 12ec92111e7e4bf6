/* SPDX-License-Identifier: MIT */
/*
 * What a reader of an export knows about each CPU by the switches that were written. Where a capture
 * says otherwise who runs, or that nobody knows, the export writes a switch to say so.
 */
#ifndef KB_LIB_EXPORT_READ_CPUS_H
#define KB_LIB_EXPORT_READ_CPUS_H

#include <errno.h>
#include <stdlib.h>

#include "analysis/trace/inside.h"

struct kb_read_cpu {
	bool known;		/* a switch was written */
	uint32_t running;
};

struct kb_read_cpus {
	struct kb_read_cpu *cpus;	/* max_cores, and one for records without a core */
	uint32_t max;
};

/* Returns 0 or -ENOMEM. */
static inline int kb_read_cpus_init(struct kb_read_cpus *read, uint32_t max_cores)
{
	read->max = max_cores;
	read->cpus = calloc((size_t)max_cores + 1, sizeof(*read->cpus));
	return read->cpus ? 0 : -ENOMEM;
}

static inline struct kb_read_cpu *kb_read_cpu(const struct kb_read_cpus *read, uint32_t core)
{
	return &read->cpus[core < read->max ? core : read->max];
}

/*
 * Whether the record of @walk, a sample, is the first that shows who runs on its CPU: at the beginning,
 * and behind lost records.
 */
static inline bool kb_read_found(const struct kb_read_cpus *read, const struct kb_trace *trace,
				 const struct kb_walk *walk)
{
	uint32_t task;

	return !walk->known && walk->event.task_id && !kb_read_cpu(read, walk->event.core)->running &&
	       kb_timeline_running(trace->timeline, walk->event.core, &task) &&
	       task == walk->event.task_id;
}

#endif
