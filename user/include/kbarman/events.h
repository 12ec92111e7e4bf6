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

struct kb_event_listing {
	struct kbarman_event event;	/* its name is what kb_events_parse() takes */
	const char *group;		/* "hardware", "software", "cache", or a PMU of sysfs */
	const char *description;	/* of a PMU's event: its terms, as sysfs has them */
};

/* Not 0: no more, kb_events_list() returns it. Pointers hold until it returns. */
typedef int (*kb_events_visit)(void *context, const struct kb_event_listing *listing);

/*
 * Every event that has a name, whether this machine can count it or not; @sysfs as
 * above. Returns 0, or what @visit did.
 */
int kb_events_list(const char *sysfs, kb_events_visit visit, void *context);

/*
 * Can this machine count it? 0; or a negative errno of perf_event_open(2), -EACCES and
 * -EPERM if only somebody else may know.
 */
int kb_event_probe(const struct kbarman_event *event);

#ifdef __cplusplus
}
#endif

#endif
