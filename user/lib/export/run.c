// SPDX-License-Identifier: MIT
/* See run.h. */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export/run.h"

void kb_export_say(const struct kb_export_options *options, const char *format, ...)
{
	va_list args;
	char *sentence;

	if (!options->say)
		return;
	va_start(args, format);
	if (vasprintf(&sentence, format, args) < 0)
		sentence = NULL;
	va_end(args);
	options->say(options->context, sentence ? sentence : "out of memory");
	free(sentence);
}

int kb_export_begin(struct kb_trace *trace, struct kb_error *err)
{
	if (!kb_trace_names(trace, err) || !kb_trace_symbolizer(trace, err))
		return err && err->code ? err->code : -ENOMEM;
	return kb_trace_rewind(trace, err);
}

bool kb_export_next(struct kb_trace *trace, struct kb_error *err)
{
	const struct kb_walk *walk;

	return kb_trace_next(trace, &walk, err) > 0;
}

uint32_t kb_export_switch_state(const struct kb_trace *trace, uint32_t task_id)
{
	const struct kb_header *header = kb_trace_header(trace);
	const struct kb_event *event = &trace->walk.event;
	int state = event->task_switch.prev_state;

	if (!task_id)
		return KB_FTRACE_RUNNING;	/* the idle task can always run */
	if (event->task_switch.reason == KB_SWITCH_PREEMPTED)
		return KB_FTRACE_PREEMPTED;
	if (kb_state_letter(header, state) == KB_LETTER_DEAD)
		return kb_names_task(trace->names, task_id, event->timestamp)->tgid == task_id ?
			KB_FTRACE_ZOMBIE : KB_FTRACE_DEAD;
	return kb_state_ftrace(header, state);
}

int kb_export_end(const struct kb_trace *trace, struct kb_out *out, bool no_memory,
		  struct kb_error *err)
{
	const struct kb_error *first;
	int error;

	if (no_memory)
		return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
	error = kb_out_flush(out);
	if (error)
		return kb_error_set(err, error, KB_NO_OFFSET, "can't write the output: %s",
				    strerror(-error));
	if (trace->result < 0)
		return 1;
	if (!kb_barman_damage(trace->barman, &first))
		return 0;
	if (err)
		*err = *first;
	return 1;
}

/* ---- what an export has ---- */

int kb_run_no_memory(const struct kb_run *run)
{
	return kb_error_set(run->err, -ENOMEM, KB_NO_OFFSET, "out of memory");
}

void kb_run_init(struct kb_run *run, struct kb_trace *trace, const struct kb_export_options *options,
		 struct kb_out *out, struct kb_error *err)
{
	*run = (struct kb_run) {
		.trace = trace, .header = kb_trace_header(trace), .options = options, .out = out,
		.err = err, .json.out = out,
	};
}

int kb_run_begin(struct kb_run *run, unsigned int uses)
{
	int error = kb_export_begin(run->trace, run->err);

	if (error)
		return error;
	kb_task_table_init(&run->tasks, run->trace);
	kb_spans_init(&run->spans);
	kb_arrows_init(&run->wakeups);
	kb_task_cpus_init(&run->moves);
	if ((uses & KB_USES_STACKS && kb_stack_table_init(&run->stacks, uses & KB_USES_ADDRESSES)) ||
	    (uses & KB_USES_PAIRS && kb_handlers_init(&run->handlers, run->trace)) ||
	    (uses & KB_USES_READ && kb_read_cpus_init(&run->read, run->header->max_cores)) ||
	    (uses & KB_USES_TIMES && kb_cputime_init(&run->times, run->trace)))
		return kb_run_no_memory(run);
	return run->waits.take ?
	       kb_stack_waits_init(&run->waits, run->trace, &run->stacks, run, run->err) : 0;
}

void kb_run_feed(struct kb_run *run, unsigned int uses)
{
	const struct kb_walk *walk = &run->trace->walk;

	if (uses & KB_USES_TIMES) {
		run->no_memory |= kb_cputime_feed(&run->times, walk) != 0;
		if (walk->event.type == KB_EVENT_SAMPLE && walk->event.sample.has_pc)
			run->no_memory |= kb_cputime_sample(&run->times, &walk->event, walk->ns,
							    &run->cpu_ns) != 0;
	}
	if (run->waits.take) {
		kb_stack_waits_feed(&run->waits, walk);
		run->no_memory |= run->waits.no_memory;
	}
}

void kb_run_release(struct kb_run *run)
{
	kb_stack_waits_release(&run->waits);
	kb_cputime_release(&run->times);
	free(run->read.cpus);
	kb_task_cpus_release(&run->moves);
	kb_handlers_release(&run->handlers);
	kb_arrows_release(&run->wakeups);
	kb_spans_release(&run->spans);
	kb_task_table_release(&run->tasks);
	kb_stack_table_release(&run->stacks);
}

struct kb_text kb_run_series(const struct kb_run *run, uint32_t id, char text[32])
{
	const struct kb_header *header = run->header;

	if (id < header->nr_series && header->series[id].name)
		return kb_text(header->series[id].name);
	snprintf(text, 32, "series %" PRIu32, id);
	return kb_text(text);
}
