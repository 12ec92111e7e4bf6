/* SPDX-License-Identifier: MIT */
/*
 * The critical path: the chain of who waited for whom, backwards from the end of a task or of the
 * time between two marks. Each moment of that time belongs to one link. Where a task was blocked
 * until another task woke it, the chain goes on in the task that woke; where an interrupt or a
 * softirq woke it, the wait for it is a link, and the chain goes on in the task itself. A softirq in which a
 * task sends to a socket of the same machine, by kb_names_object(), counts as the task that sends.
 *
 * A path back from the end of a task, or to a mark from one of another task, says what made that
 * end late: it stays in the task that woke. One of a time, by a filter or by two marks of one
 * task, says what that did in it: it is in the task that woke for as long as the other one waited,
 * and goes on in that one before.
 *
 *	struct kb_path_options options = { .size = sizeof(options), .task = "cc" };
 *	const struct kb_path *path;
 *
 *	if (kb_path_create(&path, trace, &options, &err) < 0)
 *		errx(1, "%s", kb_error_text(&err));
 *	for (uint64_t i = 0; i < path->nr; i++)
 *		printf("%lld ns  task %u\n",
 *		       (long long)(path->links[i].end - path->links[i].start),
 *		       path->links[i].task_id);
 *	kb_path_destroy(path);
 *
 * Later versions of the library may add members at the ends of the structs here, which the library
 * allocates, and kinds at the end of the enum.
 */
#ifndef KBARMAN_PATH_H
#define KBARMAN_PATH_H

#include <kbarman/latency.h>
#include <kbarman/waits.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Which path: of a task, or between two marks. */
struct kb_path_options {
	size_t size;		/* of this struct, as the caller knows it: sizeof() */
	const char *task;	/* name: of the task of this name that ran last. The path begins
				 * with the first record of it */
	bool has_tid;
	uint32_t tid;		/* the same, by the number of the task */
	const char *from, *until;	/* texts of annotations: from the first one with this text
				 * to the first one behind it with that, backwards from the
				 * task that wrote `until` */
	const struct kb_filter *filter;	/* only its time: the path of a task goes back from its
				 * end, or from the task's end in it, to its begin. If the capture
				 * ends earlier, it goes back from where the task ran last, or if
				 * that was not in that time, from the end of the capture.
				 * NULL: all */
};

enum kb_link_kind {
	KB_LINK_RUN,		/* the task ran */
	KB_LINK_QUEUE,		/* it was woken, and waited for a CPU */
	KB_LINK_PREEMPTED,	/* it was preempted, and waited for a CPU */
	KB_LINK_WAIT,		/* it was blocked, until `by`, which is no task, woke it */
	KB_LINK_UNKNOWN,	/* it was blocked, and no record says who woke it */
	KB_LINK_UNSEEN,		/* no record of it is known from that time */
	KB_LINK_THROTTLED,	/* it could have run, and its CPU idled: its control group or the real-time
				 * tasks had used up their time */
};

/* A piece of the path. */
struct kb_link {
	enum kb_link_kind kind;
	uint32_t task_id;
	struct kb_origin by;	/* queue and preempted: what ran most on its CPU meanwhile (kind
				 * unknown: nothing); wait: what woke it */
	uint64_t ticks;		/* when it ended, for names */
	int64_t start, end;	/* ns, as kb_barman_ns() */
	bool in_gap;		/* records are missing in that time: it may have been otherwise */
	/*
	 * What was waited for meanwhile, by whom: by the task itself, if it waits and the capture says
	 * for what; else by the one that waited for this task. kind KB_OBJECT_NONE: not known.
	 */
	struct kb_object object;
	uint32_t waiter;
};

/* A path. Its links tile the time from `from` to `until`. */
struct kb_path {
	bool damaged;			/* the capture is */
	uint32_t task_id;		/* where it ends */
	uint64_t ticks;			/* when */
	int64_t from, until;		/* ns */
	bool cut;			/* its beginning did not fit, so it begins later, or with a
					 * link that is unseen: 200000 links are kept, of all tasks
					 * together 1000000 if the path is one of a time */
	const struct kb_link *links;	/* in order */
	uint64_t nr;
	uint64_t wakeups;		/* records of them that were read; 0: there may be none */
};

/*
 * Find the path. Reads all of @trace, or up to the second mark. @trace must live as long as the
 * path. Returns 0; 1 if the capture is damaged: @err says where; -ENOENT if there is no such task
 * or mark in the time that is wanted: @err says which; or what kb_latency_create() returns.
 */
int kb_path_create(const struct kb_path **out, struct kb_trace *trace,
		   const struct kb_path_options *options, struct kb_error *err);

/*
 * Which path @text asks for: "FROM..UNTIL" two marks, else a task by its name or number. @text is
 * changed, and must live as long as @options, whose other members stay.
 */
void kb_path_parse(struct kb_path_options *options, char *text);

/* A word, such as "run" or "queue": the key of the JSON. Never NULL. */
const char *kb_link_name(enum kb_link_kind kind);

/*
 * What link->waiter waited for: of the row, the members that say what it was, and `task`, whose name is in
 * @name. A fault has its address.
 */
struct kb_waits_row kb_link_wait(const struct kb_link *link, struct kb_trace *trace,
				 char name[KB_TASK_NAME_BUFFER]);

/* Free @path, which may be NULL. */
void kb_path_destroy(const struct kb_path *path);

/* ---- requests ---- */

/*
 * What the requests of a server waited for. A request is the time between two marks, or between
 * two system calls, of one task, and has its critical path: here are those of the slowest ones,
 * and what all of them waited for.
 *
 *	struct kb_requests_options options = {
 *		.size = sizeof(options), .from = "begin", .until = "end", .slowest = 5,
 *	};
 *	const struct kb_requests *requests;
 *
 *	if (kb_requests_create(&requests, trace, &options, &err) < 0)
 *		errx(1, "%s", kb_error_text(&err));
 *	for (uint32_t i = 0; i < requests->nr_slowest; i++)
 *		printf("task %u: %lld ns\n", requests->slowest[i]->task_id,
 *		       (long long)(requests->slowest[i]->until - requests->slowest[i]->from));
 *	kb_requests_destroy(requests);
 */
struct kb_requests_options {
	size_t size;		/* of this struct, as the caller knows it: sizeof() */
	/*
	 * A request is from @from to the next @until of the same task. If @from comes again
	 * before, the request begins anew. They are:
	 *
	 *	TEXT, mark:TEXT		a mark (annotation or bookmark) with this text
	 *	syscall:NAME		a system call: a request begins at the end of one that did
	 *				not fail, and ends at the begin of one
	 *	syscall:NAME(N)		the same, if its first argument, mostly a descriptor, is N
	 *	syscall:NAME(fd)	in both: the first arguments are the same, so a task may
	 *				have a request for each of its connections
	 *
	 * In TEXT and NAME a '*' stands for any characters, and a '?' for one.
	 */
	const char *from, *until;
	const struct kb_filter *filter;	/* only requests of these tasks, and those that are whole
					 * in that time; not by CPU. NULL: all. It is copied; what
					 * it refers to must live as long as the result */
	uint32_t slowest;	/* how many of these keep their paths */
};

/* What requests waited for. */
struct kb_requests_row {
	enum kb_link_kind kind;
	const char *task;		/* whose links they are; NULL: the task of the request */
	struct kb_latency_stats stats;	/* of each request that has such links, their sum */
	struct kb_link longest;		/* of these links */
};

struct kb_requests {
	bool damaged;			/* the capture is */
	struct kb_latency_stats durations;	/* of all requests */
	uint64_t open;			/* requests that began and have no end */
	uint64_t wakeups;		/* records of them that were read; 0: there may be none */
	const struct kb_path *const *slowest;	/* the slowest one first; each is its whole time */
	uint32_t nr_slowest;
	const struct kb_requests_row *rows;	/* the largest sum first; they add up to durations */
	uint32_t nr;
};

/*
 * Read all of @trace, which must live as long as the result. Returns 0; 1 if the capture is
 * damaged: @err says where; -ENOENT if there is no request: @err says what is missing; or what
 * kb_path_create() returns. kb_requests_destroy() takes NULL, too.
 */
int kb_requests_create(const struct kb_requests **out, struct kb_trace *trace,
		       const struct kb_requests_options *options, struct kb_error *err);
void kb_requests_destroy(const struct kb_requests *requests);

/*
 * Both ends of "FROM..UNTIL". @text is changed, and must live as long as @options. False: it has
 * no two ends.
 */
bool kb_requests_parse(struct kb_requests_options *options, char *text);

#ifdef __cplusplus
}
#endif

#endif
