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

#include <kbarman/barman.h>
#include <kbarman/symbol.h>
#include <kbarman/tasks.h>

/* A core: the task that runs on it, and the symbol of the last sample. */
struct core {
	const char *task;
	const char *symbol;
};

static void print_switch(const struct kb_barman *barman, const struct kb_tasks *tasks,
			 const struct kb_event *event, struct core *core)
{
	struct kb_task_hit hit;
	const char *next;
	double seconds = (double)kb_barman_ns(barman, event->timestamp) / 1e9;

	kb_tasks_find(tasks, event->task_id, event->timestamp, &hit);
	next = hit.row && hit.row->name ? hit.row->name : "?";
	printf("%.9f [%03" PRIu32 "] %s -> %s (%s", seconds, event->core, core->task, next,
	       event->task_switch.reason == KB_SWITCH_PREEMPTED ? "preempted" : "blocked");
	if (core->symbol)
		printf(", last seen in %s", core->symbol);
	puts(")");
	*core = (struct core){ .task = next };
}

int main(int argc, char **argv)
{
	const char *path = argc > 1 ? argv[1] : "kbarman.cap";
	const struct kb_symbol_options options = { 0 };
	struct kb_symbolizer *symbolizer;
	struct kb_barman *barman;
	struct kb_tasks *tasks;
	struct kb_error error;
	struct kb_event event;
	struct core *cores;
	uint32_t i, nr_cores;
	int more;

	if (kb_barman_open(&barman, path, &error) ||
	    kb_symbolizer_create(&symbolizer, barman, path, &options, &error))
		errx(EXIT_FAILURE, "%s", kb_error_text(&error));
	if (kb_tasks_create(&tasks, barman))
		errx(EXIT_FAILURE, "out of memory");
	nr_cores = kb_barman_header(barman)->max_cores;
	cores = calloc(nr_cores, sizeof(*cores));
	if (!cores)
		err(EXIT_FAILURE, "%" PRIu32 " cores", nr_cores);
	for (i = 0; i < nr_cores; i++)
		cores[i].task = "?";

	while ((more = kb_barman_next(barman, &event, &error)) > 0) {
		if (event.type == KB_EVENT_TASK_SWITCH)
			print_switch(barman, tasks, &event, &cores[event.core]);
		else if (event.type == KB_EVENT_SAMPLE && event.sample.has_pc)
			cores[event.core].symbol =
				kb_symbolizer_resolve(symbolizer, event.task_id, event.timestamp,
						      event.sample.pc)->name;
	}
	if (more < 0)
		warnx("%s", kb_error_text(&error));
	free(cores);
	kb_tasks_destroy(tasks);
	kb_symbolizer_destroy(symbolizer);
	kb_barman_close(barman);
	return more < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
