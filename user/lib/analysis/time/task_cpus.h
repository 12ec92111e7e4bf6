/* SPDX-License-Identifier: MIT */
/*
 * The CPU that each task belongs to. A record of a migration has the new CPU only, and formats of
 * other tools want the old one, too.
 */
#ifndef KB_LIB_ANALYSIS_TIME_TASK_CPUS_H
#define KB_LIB_ANALYSIS_TIME_TASK_CPUS_H

#include <kbarman/event.h>

#include "base/table.h"

struct kb_task_cpus {
	struct kb_table rows;
};

void kb_task_cpus_init(struct kb_task_cpus *cpus);
void kb_task_cpus_release(struct kb_task_cpus *cpus);

/*
 * Take the next event. Returns, for a migration, the CPU that the task leaves, which is that of the
 * record if it is not known; else 0. -ENOMEM is possible.
 */
int64_t kb_task_cpus_feed(struct kb_task_cpus *cpus, const struct kb_event *event);

#endif
