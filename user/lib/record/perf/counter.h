/* SPDX-License-Identifier: MIT */
/*
 * record/perf/: the kernel's own counters: lists of events as perf(1) takes them (parse.h), PMUs of
 * sysfs, counting by perf_event_open(), and what a session counts of it (event_plan.h).
 *
 * A counter of the kernel (perf_event_open), without the module: counts an event at one place.
 */
#ifndef KB_LIB_RECORD_PERF_COUNTER_H
#define KB_LIB_RECORD_PERF_COUNTER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <kbarman/perf_events.h>

/* Does @event need a counter of the hardware? */
bool kb_perf_event_is_hardware(const struct kb_perf_event *event);

struct kb_perf_place {
	pid_t pid;		/* a task, and the children that it will have; -1: any */
	int cpu;		/* -1: any */
	int leader;		/* descriptor of the counter with which it counts together; -1: it
				 * leads a group, or is alone */
	bool leads;		/* a group: kb_perf_group_read() reads all of it */
	bool on_exec;		/* begin when the task executes a program */
	bool user_only;		/* do not count the kernel */
};

/* The counter does not count yet. Returns its descriptor, which close(2) ends; or -errno. */
int kb_perf_counter_open(const struct kb_perf_event *event, const struct kb_perf_place *place);

/* A counter of a group counts when the one that leads it does. */
void kb_perf_counter_start(int fd);
void kb_perf_counter_stop(int fd);

struct kb_perf_count {
	uint64_t value;
	uint64_t enabled;	/* ns for which it should have counted, */
	uint64_t running;	/* and for which it did: the kernel may count events in turns */
};

/* False: it can't be read, and @count is unchanged. The counter does not lead a group. */
bool kb_perf_counter_read(int fd, struct kb_perf_count *count);

/*
 * Read all counters of the group that @fd leads, at one moment, in the order in which they were
 * opened. Returns their number, at most @max, or -errno.
 */
int kb_perf_group_read(int fd, struct kb_perf_count *counts, unsigned int max);

#endif
