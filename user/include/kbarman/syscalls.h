/* SPDX-License-Identifier: MIT */
/*
 * The system calls of a capture (kbarman record --sources syscalls), added up by task and call.
 *
 *	struct kb_syscalls_options options = { .size = sizeof(options) };
 *	const struct kb_syscalls *syscalls;
 *
 *	if (kb_syscalls_create(&syscalls, trace, &options, &err) < 0)
 *		errx(1, "%s", kb_error_text(&err));
 *	for (uint32_t i = 0; i < syscalls->nr; i++)
 *		printf("%8llu  %s %s\n", (unsigned long long)syscalls->rows[i].count, syscalls->rows[i].task,
 *		       syscalls->rows[i].call ? syscalls->rows[i].call : "");
 *	kb_syscalls_destroy(syscalls);
 *
 * The result belongs to the thread that uses its trace. Later versions of the library may add members at
 * the ends of the structs here, which the library allocates.
 */
#ifndef KBARMAN_SYSCALLS_H
#define KBARMAN_SYSCALLS_H

#include <kbarman/filter.h>
#include <kbarman/latency.h>
#include <kbarman/trace.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What to read. All zero behind `size`: everything. */
struct kb_syscalls_options {
	size_t size;		/* of this struct, as the caller knows it: sizeof() */
	/*
	 * Only calls of these tasks, and those that ended on these CPUs and in that time. NULL: all. It is
	 * copied; what it refers to must live as long as the result.
	 */
	const struct kb_filter *filter;
};

/* Calls of one number of tasks of one name. A new task's return from the call that made it is none. */
struct kb_syscalls_row {
	const char *task;		/* the name when the call ended */
	const char *call;		/* name of the system call; NULL: not known */
	uint32_t number;
	bool compat;			/* of the machine's other kind of programs */
	uint64_t count, errors;		/* all of them; those that returned a negative errno */
	struct kb_latency_stats stats;	/* of those whose begin is known */
};

struct kb_syscalls {
	const struct kb_syscalls_row *rows;	/* the largest sum first */
	uint32_t nr;
	uint64_t count, sum_ns;			/* of all of them */
	uint64_t duration_ns;			/* of the capture */
	bool recorded;				/* the capture has system calls, or would have */
	bool damaged;
};

/*
 * Read all of @trace, which must live as long as the result. Returns 0; 1 if the capture is damaged: @err says
 * where, and the result is of everything that is whole; or a negative errno, then there is none: the
 * errors of kb_trace_rewind(), -EINVAL and -ENOMEM. @options may be NULL. kb_syscalls_destroy() takes
 * NULL, too.
 */
int kb_syscalls_create(const struct kb_syscalls **out, struct kb_trace *trace,
		       const struct kb_syscalls_options *options, struct kb_error *err);
void kb_syscalls_destroy(const struct kb_syscalls *syscalls);

#ifdef __cplusplus
}
#endif

#endif
