/* SPDX-License-Identifier: MIT */
/*
 * A part of a capture: some CPUs, one task, a time. All that reads records chooses them by the same
 * rules:
 *
 * - a record is on the CPU that wrote it;
 * - a task switch is of the task that leaves the CPU and of the one that comes, a halt is of the
 *   task that runs there, a wakeup and a migration are of the task that is moved and of the one
 *   that runs meanwhile; all other records are of the task that runs;
 * - a task has the name that it has at the time of the record;
 * - times count from kb_trace_first(), or are those of a clock; both ends belong to the time.
 *
 *	struct kb_filter filter = { .size = sizeof(filter), .task = "xz" };
 *
 *	while (kb_trace_next(trace, &walk, &err) > 0)
 *		if (kb_trace_wants(trace, &filter))
 *			nr++;
 */
#ifndef KBARMAN_FILTER_H
#define KBARMAN_FILTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <kbarman/trace.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a time is. */
enum kb_filter_clock {
	KB_FILTER_CAPTURE,	/* ns since kb_trace_first() */
	KB_FILTER_UNIX,		/* ns since 1970, UTC */
	KB_FILTER_OF_DAY,	/* ns since midnight, in local time, of the day on which it is nearest to
				 * the beginning of the capture; if `until' came in front of `from'
				 * so, the nearer one says the day */
};

/* What is wanted. All zero behind `size`: everything. */
struct kb_filter {
	size_t size;			/* of this struct, as the caller knows it: sizeof() */
	const uint64_t *cpus;		/* a bit map as of kb_cpulist_parse(); NULL: all */
	unsigned int nr_cpu_words;
	const char *task;		/* name; NULL: any */
	bool has_tid;
	uint32_t tid;			/* number of a task or of its process */
	bool has_time;
	uint64_t from, until;		/* ns, by these clocks: */
	enum kb_filter_clock from_clock, until_clock;
};

/*
 * Whether @filter wants the current record of @trace, the one that kb_trace_next() gave last. The
 * first call makes the tasks of the trace; without memory for them nothing is wanted. @filter NULL
 * wants all.
 */
bool kb_trace_wants(struct kb_trace *trace, const struct kb_filter *filter);

#ifdef __cplusplus
}
#endif

#endif
