/* SPDX-License-Identifier: MIT */
/*
 * What took time in a capture (kbarman record --sources syscalls,faults,block), added up by task and by what it
 * was: system calls by call, page faults by the function that wanted the page, requests to block devices by disk
 * and operation.
 *
 *	struct kb_ended_options options = { .size = sizeof(options), .what = KB_WHAT_SYSCALL };
 *	const struct kb_ended *calls;
 *
 *	if (kb_ended_create(&calls, trace, &options, &err) < 0)
 *		errx(1, "%s", kb_error_text(&err));
 *	for (uint32_t i = 0; i < calls->nr; i++)
 *		printf("%8llu  %s %s\n", (unsigned long long)calls->rows[i].count, calls->rows[i].task,
 *		       calls->rows[i].name ? calls->rows[i].name : "");
 *	kb_ended_destroy(calls);
 *
 * The result belongs to the thread that uses its trace. Later versions of the library may add members at
 * the ends of the structs here, which the library allocates.
 */
#ifndef KBARMAN_ENDED_H
#define KBARMAN_ENDED_H

#include <kbarman/filter.h>
#include <kbarman/latency.h>
#include <kbarman/trace.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What to read. All zero behind `size` and `what`: everything. */
struct kb_ended_options {
	size_t size;		/* of this struct, as the caller knows it: sizeof() */
	enum kb_what what;	/* KB_WHAT_SYSCALL, KB_WHAT_FAULT or KB_WHAT_BLOCK */
	/*
	 * Only what is of these tasks, and ended on these CPUs and in that time. NULL: all. It is copied; what
	 * it refers to must live as long as the result.
	 */
	const struct kb_filter *filter;
};

enum kb_fault_kind {
	KB_FAULT_KIND_MINOR = 0,
	KB_FAULT_KIND_MAJOR = 1,
	KB_FAULT_KIND_FAILED = 2,	/* no page came */
};

/* Those of one name, of tasks of one name. A new task's return from the call that made it is no call. */
struct kb_ended_row {
	/* The name when it ended. Of a request: of the task that gave it to Linux's queue; NULL: not known. */
	const char *task;
	const char *name;		/* the call, the function, the disk; NULL: not known */
	const char *image;		/* of the function; NULL: of what is none */
	uint32_t number;		/* of the call; enum kb_fault_kind; the disk's MAJOR << 20 | MINOR */
	uint16_t flags;			/* KB_SYSCALL_COMPAT; 0; the request's KB_BLOCK_OPERATION */
	uint64_t count, errors;		/* all of them; those that returned a negative errno */
	uint64_t bytes;			/* of requests */
	struct kb_latency_stats stats;	/* of those whose begin and end are known */
};

struct kb_ended {
	const struct kb_ended_row *rows;	/* the largest sum first */
	uint32_t nr;
	uint64_t count, sum_ns;			/* of all of them */
	uint64_t duration_ns;			/* of the capture */
	enum kb_what what;
	bool recorded;				/* the capture has such records, or would have */
	bool damaged;
};

/*
 * Read all of @trace, which must live as long as the result. Returns 0; 1 if the capture is damaged: @err says
 * where, and the result is of everything that is whole; or a negative errno, then there is none: the
 * errors of kb_trace_rewind(), -EINVAL and -ENOMEM. kb_ended_destroy() takes NULL, too.
 */
int kb_ended_create(const struct kb_ended **out, struct kb_trace *trace, const struct kb_ended_options *options,
		    struct kb_error *err);
void kb_ended_destroy(const struct kb_ended *ended);

#ifdef __cplusplus
}
#endif

#endif
