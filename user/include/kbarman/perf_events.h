/* SPDX-License-Identifier: MIT */
/* Names of countable events: parse and list them. */
#ifndef KBARMAN_PERF_EVENTS_H
#define KBARMAN_PERF_EVENTS_H

#include <linux/types.h>

#include <kbarman/error.h>

#ifdef __cplusplus
extern "C" {
#endif

#define KB_EVENTS_MAX	32	/* of one session */

/*
 * An event as a user names it: what is counted, where, and how precisely. flags are KB_PERF_*. What
 * guests do, the virtual machines that this machine is a host of, is never counted, unless the PMU
 * can't leave it out.
 */
#define KB_PERF_NO_USER		(1U << 0)	/* don't count user space, */
#define KB_PERF_NO_KERNEL	(1U << 1)	/* the kernel, */
#define KB_PERF_NO_HV		(1U << 2)	/* the hypervisor */
/* precise_ip of perf_event_attr, 0 to 3, of an event that takes samples */
#define KB_PERF_PRECISE_SHIFT	3
#define KB_PERF_PRECISE		(3U << KB_PERF_PRECISE_SHIFT)
#define KB_PERF_GROUP		(1U << 5)	/* counted together with the event before it */
#define KB_PERF_TURN		(1U << 6)	/* counted in turns; a group has one turn */

struct kb_perf_event {
	__u32 type;		/* enum perf_type_id, or a PMU's type in sysfs */
	__u32 flags;
	__u64 config;
	__u64 config1;
	__u64 config2;
	char name[64];		/* NUL-terminated */
};

/*
 * Parse the comma-separated @list into at most @max elements of @events. Returns the number of
 * events, at least one. An event of the list has one of these forms, tried in this order:
 *
 *	PMU/TERM[=VALUE],…/		a PMU of sysfs; a term is one of its events, one of its
 *					format fields, config, config1, config2, rNNN, a generic
 *					name that is counted on this PMU only, or name=NAME; on
 *					a machine with several kinds of cores big, mid and little
 *					stand for their PMUs
 *	cycles, context-switches, …	a generic hardware, cache or software event, by
 *					the name that perf uses
 *	rNNN				a raw event number of the CPU's PMU, hexadecimal
 *	NAME				an event that sysfs lists for the CPU's PMU
 *	SYSTEM:NAME			a tracepoint
 *
 * Behind each of them may stand a colon (not after a slash) and modifiers, as in cycles:u or
 * cpu/cycles/u: u, k and h count in user space, in the kernel, in the hypervisor only; p, pp, ppp
 * take samples more precisely. {EVENT,EVENT}:MODIFIERS is a group, which is counted together:
 * KB_PERF_GROUP of all but its first event. The modifiers are then those of each event.
 *
 * The name of an event is what stands in the list, or what name= says.
 *
 * A generic event becomes one event, which each CPU counts by its own PMU.
 *
 * @sysfs is the path of sysfs, NULL for "/sys". -ENOENT: no such event, PMU or term; -EINVAL:
 * malformed; -E2BIG: more than @max. @err names the element.
 */
int kb_events_parse(struct kb_perf_event *events, unsigned int max, const char *list,
		    const char *sysfs, struct kb_error *err);

/*
 * The same for counters of tasks, which run on all CPUs. On a machine with several kinds of cores, a
 * generic event, rNNN and NAME become an event for each PMU that has it, with the name
 * PMU/NAME/MODIFIERS, and a group becomes one for each PMU. @max counts all of them.
 */
int kb_events_parse_each_pmu(struct kb_perf_event *events, unsigned int max, const char *list,
			     const char *sysfs, struct kb_error *err);

/*
 * The list that kb_events_parse() makes these @nr events of. The caller frees it. NULL: out of
 * memory. @sysfs as above.
 */
char *kb_events_text(const struct kb_perf_event *events, unsigned int nr, const char *sysfs);

struct kb_event_listing {
	struct kb_perf_event event;	/* its name is what kb_events_parse() takes */
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
int kb_event_probe(const struct kb_perf_event *event);

#ifdef __cplusplus
}
#endif

#endif
