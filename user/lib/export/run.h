/* SPDX-License-Identifier: MIT */
/* What the run() of each export does: it begins, complains and ends. */
#ifndef KB_LIB_EXPORT_RUN_H
#define KB_LIB_EXPORT_RUN_H

#include <kbarman/export.h>

#include "analysis/time/shown.h"

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
