/* SPDX-License-Identifier: MIT */
/*
 * What tasks waited for: the time between the switch at which a task blocked and the next switch to it,
 * added up by task and object. Captures of `kbarman record` have objects; without them a row says
 * only that the task blocked.
 *
 *	struct kb_waits_options options = { .size = sizeof(options) };
 *	const struct kb_waits *waits;
 *
 *	if (kb_waits_create(&waits, trace, &options, &err) < 0)
 *		errx(1, "%s", kb_error_text(&err));
 *	for (uint32_t i = 0; i < waits->nr; i++)
 *		printf("%8llu ns  %s %s\n", (unsigned long long)waits->rows[i].stats.sum_ns,
 *		       waits->rows[i].task, waits->rows[i].call ? waits->rows[i].call : "");
 *	kb_waits_destroy(waits);
 *
 * The result belongs to the thread that uses its trace. Later versions of the library may add members at
 * the ends of the structs here, which the library allocates.
 */
#ifndef KBARMAN_WAITS_H
#define KBARMAN_WAITS_H

#include <kbarman/filter.h>
#include <kbarman/latency.h>
#include <kbarman/trace.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What to read. All zero behind `size`: everything. */
struct kb_waits_options {
	size_t size;		/* of this struct, as the caller knows it: sizeof() */
	/*
	 * Only waits of these tasks, and those that began on these CPUs and in that time. NULL: all. It
	 * is copied; what it refers to must live as long as the result.
	 */
	const struct kb_filter *filter;
};

/*
 * Waits of tasks of one name for one object: a file by device and number, a pipe or a socket by number, a
 * futex by process and address, a lock of Linux by its address, if that is told, what has no place in a file
 * system by its name. Of calls that wait for no descriptor the call is the object.
 */
struct kb_waits_row {
	const char *task;		/* the name when the wait began */
	uint8_t object;			/* enum kb_object_kind */
	bool iowait;			/* Linux says that it waited for a disk */
	bool others;			/* all of that kind that are not among the first 65,536 */
	bool outside;			/* the task was in no system call */
	const char *call;		/* name of the system call; NULL: none, or not known */
	uint32_t device;		/* of a file or a device: MAJOR << 20 | MINOR */
	uint64_t value;			/* the inode's number, or the address */
	uint32_t pid;			/* of a futex: the process */
	struct kb_latency_stats stats;
	const char *name;		/* as kb_names_object() has it, any bytes; NULL: not known */
	uint32_t holder;		/* of a lock: who held it when the longest wait began; 0: not known */
	const char *holder_task;	/* ... and the name of that thread */
	struct kb_origin waker;		/* who ended the longest wait; kind unknown: no record says so */
	uint64_t woken;			/* ticks: when */
};

struct kb_waits {
	const struct kb_waits_row *rows;	/* the largest sum first */
	uint32_t nr;
	uint64_t sum_ns;			/* of all of them */
	uint64_t duration_ns;			/* of the capture */
	bool has_objects;			/* the capture has objects */
	bool damaged;
};

/*
 * Read all of @trace, which must live as long as the result. Returns 0; 1 if the capture is damaged: @err says
 * where, and the result is of everything that is whole; or a negative errno, then there is none: the
 * errors of kb_trace_rewind(), -EINVAL and -ENOMEM. @options may be NULL. kb_waits_destroy() takes
 * NULL, too.
 */
int kb_waits_create(const struct kb_waits **out, struct kb_trace *trace,
		    const struct kb_waits_options *options, struct kb_error *err);
void kb_waits_destroy(const struct kb_waits *waits);

#ifdef __cplusplus
}
#endif

#endif
