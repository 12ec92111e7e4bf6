// SPDX-License-Identifier: MIT
/*
 * Prints which task ran on each CPU of a capture and, if the task was sampled, the function of its
 * last sample. The program needs only the installed library:
 *
 *	cc dump_switches.c $(pkg-config --cflags --libs kbarman) -o dump_switches
 *	./dump_switches kbarman.cap
 */
#include <err.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <kbarman/trace.h>

/* A core: the task that runs on it, and the symbol of the last sample. */
struct core {
	const char *task;
	const char *symbol;
};

static void print_switch(const struct kb_tasks *tasks, const struct kb_walk *walk,
			 struct core *core)
{
	const struct kb_event *event = &walk->event;
	struct kb_task_hit hit;
	const char *next;

	kb_tasks_find(tasks, event->task_id, event->timestamp, &hit);
	next = hit.row && hit.row->name ? hit.row->name : "?";
	printf("%.9f [%03" PRIu32 "] %s -> %s (%s", (double)walk->ns / 1e9, event->core, core->task,
	       next, event->task_switch.reason == KB_SWITCH_PREEMPTED ? "preempted" : "blocked");
	if (core->symbol)
		printf(", last seen in %s", core->symbol);
	puts(")");
	*core = (struct core){ .task = next };
}

int main(int argc, char **argv)
{
	const char *path = argc > 1 ? argv[1] : "kbarman.cap";
	const struct kb_tasks *tasks;
	const struct kb_frame *frame;
	const struct kb_walk *walk;
	struct kb_trace *trace;
	struct kb_error error;
	struct core *cores;
	uint32_t i, nr_cores;
	int more;

	if (kb_trace_open(&trace, path, NULL, &error) || !(tasks = kb_trace_tasks(trace, &error)) ||
	    !kb_trace_symbolizer(trace, &error))
		errx(EXIT_FAILURE, "%s", kb_error_text(&error));
	nr_cores = kb_trace_header(trace)->max_cores;
	cores = calloc(nr_cores, sizeof(*cores));
	if (!cores)
		err(EXIT_FAILURE, "%" PRIu32 " cores", nr_cores);
	for (i = 0; i < nr_cores; i++)
		cores[i].task = "?";

	while ((more = kb_trace_next(trace, &walk, &error)) > 0) {
		if (walk->event.type == KB_EVENT_TASK_SWITCH)
			print_switch(tasks, walk, &cores[walk->event.core]);
		else if (walk->event.type == KB_EVENT_SAMPLE && walk->event.sample.has_pc &&
			 kb_trace_frames(trace, 0, &frame) > 0)
			cores[walk->event.core].symbol = frame->symbol.name;
	}
	if (more < 0)
		warnx("%s", kb_error_text(&error));
	free(cores);
	kb_trace_close(trace);
	return more < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
