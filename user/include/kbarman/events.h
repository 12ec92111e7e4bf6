/* SPDX-License-Identifier: MIT */
/* What to count, from the names people type. */
#ifndef KBARMAN_EVENTS_H
#define KBARMAN_EVENTS_H

#include <uapi/kbarman.h>

#include <kbarman/error.h>

#ifdef __cplusplus
extern "C" {
#endif

#define KB_EVENTS_MAX	32	/* of one session */

/*
 * Turn the comma-separated @list into at most @max elements of @events; returns
 * how many there are, at least one. Each element of the list is, in the order in
 * which its meaning is looked for:
 *
 *	cycles, context-switches, …	a generic hardware, cache or software event by
 *					the name that perf has for it
 *	rNNN				the CPU PMU's own number, in hexadecimal
 *	PMU/TERM[=VALUE],…/		a PMU of sysfs; a term is one of its events, one
 *					of its format fields, config, config1, config2,
 *					or name=NAME
 *	NAME				an event that sysfs lists for the CPU's PMU
 *
 * @sysfs is where sysfs is, NULL for "/sys". On error: -ENOENT no such event, PMU
 * or term; -EINVAL malformed; -E2BIG more than @max; @err names the element.
 */
int kb_events_parse(struct kbarman_event *events, unsigned int max, const char *list,
		    const char *sysfs, struct kb_error *err);

#ifdef __cplusplus
}
#endif

#endif
