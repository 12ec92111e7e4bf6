/* SPDX-License-Identifier: MIT */
/*
 * Why it was late: how long tasks waited between the moment they could run and the moment they ran,
 * and what their CPU did meanwhile; what interrupts and softirqs took from whom; what ended halts.
 *
 *	struct kb_latency_options options = { .size = sizeof(options) };
 *	const struct kb_latency *latency;
 *
 *	if (kb_latency_create(&latency, trace, &options, &err) < 0)
 *		errx(1, "%s", kb_error_text(&err));
 *	for (uint32_t i = 0; i < latency->nr_tasks; i++)
 *		printf("%8llu ns  task %u\n", (unsigned long long)latency->tasks[i].woken.p99_ns,
 *		       latency->tasks[i].task_id);
 *	kb_latency_destroy(latency);
 *
 * The wait of a woken task begins with its wakeup, or, if it still ran then, when it left its CPU.
 * The wait of a preempted task begins when it left its CPU. Time asleep is part of neither.
 *
 * A struct kb_latency belongs to the thread that uses its trace. Later versions of the library may
 * add members at the ends of the structs here, which the library allocates, and kinds at the ends
 * of the enums.
 */
#ifndef KBARMAN_LATENCY_H
#define KBARMAN_LATENCY_H

#include <kbarman/filter.h>
#include <kbarman/losses.h>
#include <kbarman/tiles.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What to read. All zero behind `size`: everything. */
struct kb_latency_options {
	size_t size;		/* of this struct, as the caller knows it: sizeof() */
	/*
	 * Only waits that ended on these CPUs, and what happened there; waits of these tasks, and
	 * what was taken from them; what began in that time. NULL: all. It is copied; what it refers
	 * to must live as long as the result.
	 */
	const struct kb_filter *filter;
};

/*
 * The name of @origin at @ticks: of the task, "idle", "TIMER" of a softirq (kb_softirq_name()), of
 * the handler of an interrupt (kb_names_irq(); "irq N" if it has none), "Rescheduling interrupts" of
 * an IPI (kb_ipi_name()). At most @size bytes with its NUL. It may be invalid UTF-8. Returns @name.
 */
char *kb_origin_name(struct kb_trace *trace, const struct kb_origin *origin, uint64_t ticks,
		     char *name, size_t size);

/* The word for what it is: "task", "irq" … Never NULL. */
const char *kb_origin_kind(enum kb_tile_kind kind);

/* The name of the system call by which @origin, a task, woke another one; NULL: not known, or it is in none. */
const char *kb_origin_call(struct kb_trace *trace, const struct kb_origin *origin);

#define KB_ORIGIN_NAME	128	/* usual size for a name */

/* Parts of a wait. They add up to it exactly. */
enum kb_part {
	KB_PART_WAKING,		/* the CPU that woke had not chosen a CPU for the task yet: known if
				 * migrations were recorded */
	KB_PART_HALT,		/* the task's CPU halted: it was leaving its idle state */
	KB_PART_AWAKE,		/* the idle task of that CPU ran */
	KB_PART_TASK,		/* other tasks ran there: the task stood in the queue */
	KB_PART_SOFTIRQ,	/* softirqs there */
	KB_PART_IRQ,		/* interrupts there */
	KB_PART_UNKNOWN,	/* no record says what that CPU did, or it is too long ago */
};

#define KB_PARTS	7

/*
 * Some times. The median and p99 come from a histogram with steps of 1/32: they are at most 3.2 %
 * too high, never too low, and exact below 64 ns. Number, sum and maximum are exact.
 */
struct kb_latency_stats {
	uint64_t count;
	uint64_t sum_ns, median_ns, p99_ns, max_ns;
};

/* The waits of a task. */
struct kb_latency_task {
	uint32_t task_id;
	uint64_t last_seen;		/* ticks; the task is named by its name at that time */
	struct kb_latency_stats woken;	/* from a wakeup until it ran */
	struct kb_latency_stats preempted;	/* from a preemption until it ran again */
	uint64_t woken_parts[KB_PARTS], preempted_parts[KB_PARTS];	/* ns */
};

/* The waits that this one ended by wakeups. */
struct kb_latency_waker {
	struct kb_origin origin;
	uint64_t last_seen;		/* ticks */
	struct kb_latency_stats woken;
	uint64_t parts[KB_PARTS];	/* ns */
};

/* Waits that found their CPU halted: the time from the wakeup until the CPU left the halt. */
struct kb_latency_idle {
	int state;			/* cpuidle index, or KB_STATE_UNKNOWN */
	struct kb_latency_stats left;
};

/* What ran on their CPU while tasks waited, both by name. */
struct kb_latency_behind {
	const char *task;		/* who waited; NULL: too many to keep apart */
	enum kb_tile_kind kind;		/* of what ran: task, softirq, irq or ipi */
	const char *ran;		/* its name; NULL: what was too much to be looked at: see
					 * kbarman-report(1) */
	uint64_t ns, pieces;
};

#define KB_LATENCY_MEANWHILE	6

struct kb_latency_piece {
	struct kb_origin what;
	uint64_t ns;
};

/* One wait, with its whole story. */
struct kb_latency_wait {
	uint32_t task_id;
	uint32_t core;			/* where the task then ran */
	bool preempted;			/* else woken: */
	bool is_new;			/* ... for the first time */
	struct kb_origin waker;		/* ... by whom */
	uint32_t waker_core;		/* ... on which CPU */
	uint32_t interrupted;		/* waker is no task: the task that it interrupted */
	bool has_left;			/* the CPU halted when the task came, and left the halt */
	int idle_state;			/* ... of this idle state */
	uint32_t moves;			/* number of migrations in the wait, if recorded */
	uint64_t ticks;			/* when it ended */
	int64_t since;			/* ns, as kb_barman_ns(): when it began */
	uint64_t ns;
	uint64_t parts[KB_PARTS];	/* ns */
	uint32_t nr_meanwhile;
	struct kb_latency_piece meanwhile[KB_LATENCY_MEANWHILE];	/* what ran on its CPU, the
								 * longest first */
	uint64_t others_ns;		/* what else ran there */
};

/* Times of one interrupt handler, IPI or softirq. */
struct kb_interrupt {
	struct kb_origin origin;
	uint64_t count;			/* number of beginnings */
	uint64_t ns;			/* without interrupts inside of it */
	uint64_t longest_ns;		/* the longest from beginning to end, likewise */
	int64_t longest_at;		/* ns; when that began */
	uint32_t longest_core;
	uint64_t raised;		/* softirqs: how often they were asked for */
	uint64_t delay_ns, longest_delay_ns;	/* ... from the first request to the beginning */
	uint64_t delays;		/* ... number of these */
};

/* What an interrupt took from a task, by its name. */
struct kb_interrupt_from {
	struct kb_origin origin;
	const char *task;		/* NULL: too many to keep apart */
	uint64_t ns, pieces;
};

/* The halts of a CPU in an idle state, and what the kernel said of its choice. */
struct kb_halts {
	uint32_t core;
	int state;			/* cpuidle index, or KB_STATE_UNKNOWN */
	uint64_t count, ns;
	uint64_t too_deep;		/* a state that is less deep would have paid ("above") */
	uint64_t too_shallow;		/* a deeper one would have paid ("below") */
	uint64_t too_deep_ns, too_shallow_ns;	/* length of these halts */
};

/* What ended halts. */
struct kb_halt_end {
	uint32_t core;
	int state;
	struct kb_origin origin;	/* kind unknown: no interrupt was seen */
	uint64_t count;
};

/*
 * The halts of a CPU of which the kernel says that another state would have paid. The state is that
 * of the kernel's counts; a driver may have entered another one than the kernel chose.
 */
struct kb_halts_paid {
	uint32_t core;
	int state;
	bool too_shallow;		/* a deeper state would have paid; else one less deep */
	int paid;			/* the deepest that would have; KB_STATE_UNKNOWN: the
					 * capture lacks the states of the CPU */
	uint64_t count, ns;
};

/* One of these halts, with its whole story. */
struct kb_halt_miss {
	uint32_t core;
	int chosen;			/* by the kernel; KB_STATE_UNKNOWN: not known */
	int state;			/* by the kernel's counts */
	bool too_shallow;
	int paid;			/* as above */
	int64_t since;			/* ns, as kb_barman_ns() */
	uint64_t ns;
	uint64_t off_ns;		/* how far it is from paying: of a halt that was too short,
					 * what lacks to the target residency, 0 if that is unknown;
					 * else its length */
	struct kb_origin origin;	/* what ended it; kind unknown: no interrupt was seen */
	bool has_task;			/* then a task ran: */
	uint32_t task_id;
	bool is_woken;			/* ... which was woken: */
	struct kb_origin waker;
	uint32_t waker_core;
	uint64_t ticks;			/* when that was known */
};

/* The sums of the tiles of a CPU. */
struct kb_cpu_tiles {
	bool seen;
	int64_t first, last;		/* ns; the tiles add up to last - first */
	uint64_t ns[KB_TILE_KINDS];	/* by enum kb_tile_kind */
};

/* The results. Strings live as long as they. All times in ns are as kb_barman_ns() or lengths. */
struct kb_latency {
	bool damaged;			/* the capture is; its undamaged part is reported */
	uint64_t duration_ns;		/* kb_trace_duration() */
	uint64_t records;
	uint64_t whats[16];		/* records by enum kb_what; [0] counts all others */
	uint32_t nr_cores;

	uint64_t gaps;			/* times without records, because they were lost or because
					 * older ones of some CPUs were overwritten; those of
					 * several CPUs that overlap are one */
	uint64_t cut;			/* waits left out because they overlap a gap */
	uint64_t unexplained;		/* waits of blocked tasks that no wakeup ended */
	uint64_t filtered;		/* waits that the options exclude */
	uint64_t unsure;		/* waits left out because their task may have been recorded
					 * in part: the recording was limited to some processes */

	struct kb_latency_stats woken, preempted;
	uint64_t woken_parts[KB_PARTS], preempted_parts[KB_PARTS];
	uint64_t woken_powers[64];	/* number of waits from 2^n ns, below 2^(n+1) ns; [0]: 0 and
					 * 1 ns */
	uint64_t preempted_powers[64];
	const struct kb_latency_task *tasks;	/* the largest sum of waits first */
	uint32_t nr_tasks;
	const struct kb_latency_waker *wakers;	/* the same */
	uint32_t nr_wakers;
	const struct kb_latency_idle *idle;	/* by state */
	uint32_t nr_idle;
	const struct kb_latency_behind *behind;	/* the longest first */
	uint32_t nr_behind;
	const struct kb_latency_wait *worst, *worst_preempted;	/* the longest first */
	uint32_t nr_worst, nr_worst_preempted;

	const struct kb_interrupt *interrupts;	/* the longest sum first */
	uint32_t nr_interrupts;
	const struct kb_interrupt_from *from;	/* the same */
	uint32_t nr_from;
	const struct kb_halts *halts;		/* by CPU and state */
	uint32_t nr_halts;
	const struct kb_halt_end *halt_ends;	/* by CPU and state, the most frequent first */
	uint32_t nr_halt_ends;
	const struct kb_cpu_tiles *cpus;	/* max_cores of the header */

	const struct kb_halts_paid *halts_paid;	/* by CPU, state and what would have paid */
	uint32_t nr_halts_paid;
	const struct kb_halt_miss *worst_deep, *worst_shallow;	/* the largest off_ns first */
	uint32_t nr_worst_deep, nr_worst_shallow;
};

/*
 * Read all of @trace, which must live as long as the result. Nothing else reads the trace
 * meanwhile. A capture that lacks records is read twice: first to find the gaps, because a wait
 * that overlaps a gap may be several waits. Returns 0; 1 if the capture is damaged: @err says
 * where, and the result is of everything that is whole; or a negative errno: those of
 * kb_trace_rewind(), -EINVAL and -ENOMEM. @options may be NULL.
 */
int kb_latency_create(const struct kb_latency **out, struct kb_trace *trace,
		      const struct kb_latency_options *options, struct kb_error *err);

/* Free @latency, which may be NULL. */
void kb_latency_destroy(const struct kb_latency *latency);

/* The name that the capture has for idle state @state of @core; empty: none. */
struct kb_text kb_latency_state_name(const struct kb_latency *latency, uint32_t core, int state);

/* A word for a part, such as "halt": the key of the JSON without its unit. Never NULL. */
const char *kb_part_name(enum kb_part part);

#ifdef __cplusplus
}
#endif

#endif
