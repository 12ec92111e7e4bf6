/* SPDX-License-Identifier: MIT */
/*
 * What tasks waited for: the time between the switch at which a task blocked and the next switch to it, added up by
 * task and object. Captures of `kbarman record` have objects; without them a row says what is inferred.
 * Further below: all time of tasks and CPUs.
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
 * the ends of the structs here, which the library allocates, but for the arrays of classes.
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
 * What tasks most likely waited for, in a capture without objects: by the functions of Linux in which they waited, if
 * switches have chains, or by the interrupt or softirq that woke them.
 */
enum kb_inferred {
	KB_INFERRED_NOTHING,
	KB_INFERRED_DISK,
	KB_INFERRED_NET,
	KB_INFERRED_TIME,
	KB_INFERRED_PIPE,
	KB_INFERRED_LOCK,
};

/* The word for it, such as "disk"; NULL: nothing, or another number. */
const char *kb_inferred_name(unsigned int inferred);

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
	uint8_t inferred;		/* enum kb_inferred */
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

/* ---- all of their time ---- */

/*
 * Where the time of tasks and CPUs went, to the nanosecond: each nanosecond of a task is in one
 * class, and so is each of a CPU. An interrupt goes before a softirq, that before a page fault,
 * that before a system call, and that before the program's own code. Off the CPU a task waits for
 * something, or could run.
 *
 *	const struct kb_classes *classes;
 *
 *	if (kb_classes_create(&classes, trace, NULL, &err) < 0)
 *		errx(1, "%s", kb_error_text(&err));
 *	for (uint32_t i = 0; i < classes->nr_tasks; i++)
 *		printf("%s: %llu ns of %llu in its own code\n", classes->tasks[i].name,
 *		       (unsigned long long)classes->tasks[i].ns[KB_CLASS_USER],
 *		       (unsigned long long)classes->tasks[i].lived_ns);
 *	kb_classes_destroy(classes);
 *
 * What a capture does not tell is not guessed. Without system calls all time of a program on a
 * CPU is KB_CLASS_RUNNING. So is what a call that has no end in the capture shares with the code
 * in front of it, because a call is recorded when it ends.
 */

enum kb_class {
	KB_CLASS_USER,		/* the program's own code */
	KB_CLASS_CALL,		/* a system call, on a CPU */
	KB_CLASS_FAULT,		/* a page fault, on a CPU */
	KB_CLASS_IRQ,		/* interrupts in the task's time */
	KB_CLASS_SOFTIRQ,
	KB_CLASS_KERNEL,	/* "kernel, other": a task of the kernel's own */
	KB_CLASS_RUNNING,	/* on a CPU; the capture does not tell these from each other */
	KB_CLASS_RUNNABLE,	/* off the CPU, though it could run */
	KB_CLASS_WAIT,
	KB_CLASS_IDLE,		/* of CPUs */
	KB_CLASS_OFFLINE,	/* of CPUs */
	KB_CLASS_UNKNOWN,	/* records were lost, or none says what ran */
};

#define KB_CLASSES	12

/* The word for an enum kb_class, such as "user"; "unknown" for other numbers. */
const char *kb_class_name(unsigned int kind);

/* What to read. All zero behind `size`: everything. */
struct kb_classes_options {
	size_t size;		/* of this struct, as the caller knows it: sizeof() */
	/*
	 * Only time of these tasks, on these CPUs or, off a CPU, since these CPUs, and in that
	 * time. What CPUs did is of all tasks. NULL: all. It is copied; what it refers to must
	 * live as long as the result.
	 */
	const struct kb_filter *filter;
	bool by_name;		/* all tasks of one name as one, whose tid is 0 */
};

/* Time of a task in one class. */
struct kb_class_row {
	enum kb_class kind;
	uint64_t ns;
	/*
	 * The system call; of KB_CLASS_RUNNING the one in which the task was at last; of a fault
	 * the word for its kind. NULL: there is none, or not known.
	 */
	const char *name;
	uint32_t number;	/* of that call; enum kb_fault_kind */
	bool known;		/* whether there is such a number */
	bool compat;		/* ... of the machine's other kind of programs */
	/*
	 * What it waited for, without the task's name, times, holder and waker. NULL: it did not
	 * wait, or nothing but its state is known:
	 */
	const struct kb_waits_row *wait;
	char state;		/* kb_state_letter(); 0: it has a `wait`, or is of another class */
	uint8_t inferred;	/* enum kb_inferred; nothing, if it has a `wait` */
};

/* A task while it had one name, or all tasks of that name. */
struct kb_classes_task {
	const char *name;
	uint32_t tid, tgid;
	/*
	 * Of the wanted time: from the first moment at which the task is known to live to the
	 * last one. It is the sum of all classes, but for a filter that wants some CPUs only.
	 */
	uint64_t lived_ns;
	uint64_t ns[KB_CLASSES];
	const struct kb_class_row *rows;	/* the most time first */
	uint32_t nr;
};

/* The sum of all classes is the wanted part of the recorded time. */
struct kb_classes_cpu {
	uint32_t cpu;
	uint64_t ns[KB_CLASSES];
};

struct kb_classes {
	const struct kb_classes_task *tasks;	/* the longest life first */
	uint32_t nr_tasks;
	const struct kb_classes_cpu *cpus;	/* those with records, in order */
	uint32_t nr_cpus;
	uint64_t ns[KB_CLASSES];		/* of these tasks */
	uint64_t duration_ns;			/* of the capture */
	bool only_some;		/* the recording was limited to some processes: these are the tasks */
	/* The capture would have these. */
	bool has_calls, has_faults, has_interrupts, has_wakeups, has_objects;
	bool damaged;
};

/*
 * Read all of @trace, which must live as long as the result. Returns 0; 1 if the capture is
 * damaged: @err says where, and the result is of everything that is whole; or a negative errno,
 * then there is none: the errors of kb_trace_rewind(), -EINVAL and -ENOMEM. @options may be NULL.
 * kb_classes_destroy() takes NULL, too.
 */
int kb_classes_create(const struct kb_classes **out, struct kb_trace *trace,
		      const struct kb_classes_options *options, struct kb_error *err);
void kb_classes_destroy(const struct kb_classes *classes);

#ifdef __cplusplus
}
#endif

#endif
