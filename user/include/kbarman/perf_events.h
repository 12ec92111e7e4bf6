/* SPDX-License-Identifier: MIT */
/* Names of countable events: parse and list them. */
#ifndef KBARMAN_PERF_EVENTS_H
#define KBARMAN_PERF_EVENTS_H

#include <uapi/kbarman.h>

#include <kbarman/error.h>

#ifdef __cplusplus
extern "C" {
#endif

#define KB_EVENTS_MAX	32	/* of one session */

/*
 * Parse the comma-separated @list into at most @max elements of @events. Returns the number of
 * elements, at least one. An element of the list has one of these forms, tried in this order:
 *
 *	cycles, context-switches, …	a generic hardware, cache or software event, by
 *					the name that perf uses
 *	rNNN				a raw event number of the CPU's PMU, hexadecimal
 *	PMU/TERM[=VALUE],…/		a PMU of sysfs; a term is one of its events, one
 *					of its format fields, config, config1, config2,
 *					or name=NAME
 *	NAME				an event that sysfs lists for the CPU's PMU
 *
 * @sysfs is the path of sysfs, NULL for "/sys". -ENOENT: no such event, PMU or term; -EINVAL:
 * malformed; -E2BIG: more than @max. @err names the element.
 */
int kb_events_parse(struct kbarman_event *events, unsigned int max, const char *list,
		    const char *sysfs, struct kb_error *err);

struct kb_event_listing {
	struct kbarman_event event;	/* its name is what kb_events_parse() takes */
	const char *group;		/* "hardware", "software", "cache", or a PMU of sysfs */
	const char *description;	/* of a PMU's event: its terms as in sysfs */
};

/* Called for each event. A result that is not 0 ends the list. Pointers hold until it returns. */
typedef int (*kb_events_visit)(void *context, const struct kb_event_listing *listing);

/*
 * List every event that has a name, whether or not this machine can count it. @sysfs as above.
 * Returns 0, or the result of @visit that ended the list.
 */
int kb_events_list(const char *sysfs, kb_events_visit visit, void *context);

/*
 * Check whether this machine can count @event. Returns 0 or a negative errno of
 * perf_event_open(2). -EACCES and -EPERM: the caller has no permission to find out.
 */
int kb_event_probe(const struct kbarman_event *event);

#ifdef __cplusplus
}
#endif

#endif
