// SPDX-License-Identifier: MIT
/* See run.h. */
#include <errno.h>
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
