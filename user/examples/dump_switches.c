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

/* A core: the task that runs on it, and the symbol of the last sample. */
struct core {
	const char *task;
	const char *symbol;
};

/* A task may be renamed. Its name at a time is in the last row that is not newer. */
static const char *task_name(const struct kb_header *header, const struct kb_event *event)
{
	const char *name = "?";
	uint32_t i;

	for (i = 0; i < header->nr_tasks; i++) {
		const struct kb_task *task = &header->tasks[i];

		if (task->task_id == event->task_id && task->timestamp <= event->timestamp &&
		    task->name)
			name = task->name;
	}
	return name;
}

static void print_switch(const struct kb_barman *barman, const struct kb_event *event,
			 struct core *core)
{
	const char *next = task_name(kb_barman_header(barman), event);
	double seconds = (double)kb_barman_ns(barman, event->timestamp) / 1e9;

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
	struct kb_error error;
	struct kb_event event;
	struct core *cores;
	uint32_t i, nr_cores;
	int more;

	if (kb_barman_open(&barman, path, &error) ||
	    kb_symbolizer_create(&symbolizer, barman, path, &options, &error))
		errx(EXIT_FAILURE, "%s", kb_error_text(&error));
	nr_cores = kb_barman_header(barman)->max_cores;
	cores = calloc(nr_cores, sizeof(*cores));
	if (!cores)
		err(EXIT_FAILURE, "%" PRIu32 " cores", nr_cores);
	for (i = 0; i < nr_cores; i++)
		cores[i].task = "?";

	while ((more = kb_barman_next(barman, &event, &error)) > 0) {
		if (event.type == KB_EVENT_TASK_SWITCH)
			print_switch(barman, &event, &cores[event.core]);
		else if (event.type == KB_EVENT_SAMPLE && event.sample.has_pc)
			cores[event.core].symbol =
				kb_symbolizer_resolve(symbolizer, event.task_id, event.timestamp,
						      event.sample.pc)->name;
	}
	if (more < 0)
		warnx("%s", kb_error_text(&error));
	free(cores);
	kb_symbolizer_destroy(symbolizer);
	kb_barman_close(barman);
	return more < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
