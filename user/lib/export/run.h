/* SPDX-License-Identifier: MIT */
/*
 * What each export has and does around its walk over the trace (sink.h): it begins, complains and ends.
 */
#ifndef KB_LIB_EXPORT_RUN_H
#define KB_LIB_EXPORT_RUN_H

#include <kbarman/export.h>

#include "analysis/samples/cputime.h"
#include "analysis/time/shown.h"
#include "analysis/time/task_cpus.h"
#include "base/text/json.h"
#include "export/read_cpus.h"
#include "export/spans.h"
#include "export/stack_table.h"
#include "export/task_table.h"
#include "export/waits.h"

/* What of struct kb_run an export uses. */
enum kb_uses {
	KB_USES_STACKS		= 1U << 0,
	KB_USES_ADDRESSES	= 1U << 1,	/* frames of the stacks are addresses, not symbols */
	KB_USES_PAIRS		= 1U << 2,	/* wakeups and handlers */
	KB_USES_MOVES		= 1U << 3,	/* which CPU a migrated task leaves */
	KB_USES_READ		= 1U << 4,
	KB_USES_TIMES		= 1U << 5,
	KB_USES_RUNNING		= 1U << 6,	/* `known` and `running` of records */
	KB_USES_CALLS_ALONE	= 1U << 7,	/* nothing is shown but samples with an address */
	KB_USES_NO_RECORDS	= 1U << 8,	/* nor these */
};

/* The members with which the struct of each export begins. */
#define KB_RUN_MEMBERS								\
	struct kb_trace *trace;							\
	const struct kb_header *header;						\
	const struct kb_export_options *options;				\
	struct kb_out *out;							\
	struct kb_error *err;							\
	struct kb_json json;		/* to `out` */				\
	struct kb_stack_table stacks;						\
	struct kb_task_table tasks;						\
	struct kb_spans spans;							\
	struct kb_arrows wakeups;						\
	struct kb_handlers handlers;						\
	struct kb_task_cpus moves;						\
	struct kb_read_cpus read;						\
	struct kb_cputime times;						\
	struct kb_stack_waits waits;	/* if `take` is set */			\
	uint64_t cpu_ns;		/* with times: since the task's last sample */	\
	bool no_memory;

struct kb_run {
	KB_RUN_MEMBERS
};

#define KB_RUN	union { struct kb_run run; struct { KB_RUN_MEMBERS }; }

void kb_run_init(struct kb_run *run, struct kb_trace *trace, const struct kb_export_options *options,
		 struct kb_out *out, struct kb_error *err);

/*
 * Go to the first record, and make what @uses, bits of enum kb_uses, asks for. In any case release it
 * behind that.
 */
int kb_run_begin(struct kb_run *run, unsigned int uses);
void kb_run_release(struct kb_run *run);

/* Take the current record for `times` and `waits`. */
void kb_run_feed(struct kb_run *run, unsigned int uses);

/* Whether a detail is a part of a wakeup or a handler, as pairs show them. */
static inline bool kb_is_of_pair(uint8_t what)
{
	return what == KB_WHAT_WAKING || what == KB_WHAT_WAKING_NEW ||
	       (what >= KB_WHAT_IRQ_ENTRY && what <= KB_WHAT_SOFTIRQ_EXIT &&
		what != KB_WHAT_SOFTIRQ_RAISE);
}

int kb_run_no_memory(const struct kb_run *run);

/* Whether a series has values of CPUs: else it is one of the whole machine. */
static inline bool kb_run_is_per_cpu(const struct kb_run *run, uint32_t id)
{
	return id < run->header->nr_series &&
	       kb_series_chart_flags(run->header, &run->header->series[id]) & KB_CHART_PER_CPU;
}

/* The name of a series, or "series 12" in @text. */
struct kb_text kb_run_series(const struct kb_run *run, uint32_t id, char text[32]);

/* Pass a sentence to options->say, if that is set. */
void kb_export_say(const struct kb_export_options *options, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/*
 * Go to the first record of @trace, and make sure that the names, the timeline and the symbolizer
 * in it can be used.
 */
int kb_export_begin(struct kb_trace *trace, struct kb_error *err);

/* Go to the next record; false: there is none, or it is damaged. */
bool kb_export_next(struct kb_trace *trace, struct kb_error *err);

/*
 * One of enum kb_ftrace_state: the state in which @task_id leaves the CPU at the current record, a
 * task switch. An ending task has TASK_DEAD, which the trace event sched_switch does not show: it
 * shows the first thread of a process as a zombie until its parent has waited for it, and all
 * others as dead.
 */
uint32_t kb_export_switch_state(const struct kb_trace *trace, uint32_t task_id);

/*
 * The end of run(): flushes @out and checks whether the capture was whole; then @err is what the
 * last kb_export_next() filled. Returns what run() returns.
 */
int kb_export_end(const struct kb_trace *trace, struct kb_out *out, bool no_memory,
		  struct kb_error *err);

#endif
