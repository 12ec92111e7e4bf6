/* SPDX-License-Identifier: MIT */
/* The generic events of the kernel, by the names that perf uses. */
#ifndef KB_LIB_RECORD_PERF_NAMES_H
#define KB_LIB_RECORD_PERF_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include <kbarman/perf_events.h>

/* Set type and config of @event. False: @name is no generic event. */
bool kb_perf_name_find(struct kb_perf_event *event, const char *name);

/* The name that PMUs of Arm or x86 have in sysfs for a generic one; NULL: there is none. */
const char *kb_perf_name_in_sysfs(const char *name, unsigned int i);

/* Called for each name; @group is "hardware", "software" or "cache". Not 0 ends the list. */
typedef int (*kb_perf_name_visit)(void *context, const char *group, const char *name,
				  const char *description);
int kb_perf_names_list(kb_perf_name_visit visit, void *context);

#endif
