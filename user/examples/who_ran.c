// SPDX-License-Identifier: MIT
/*
 * Prints which task ran on a CPU, when, and for how long. The program needs only the installed
 * library:
 *
 *	cc who_ran.c $(pkg-config --cflags --libs kbarman) -o who_ran
 *	./who_ran kbarman.cap 3
 */
#include <err.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <kbarman/trace.h>

/* @timestamp: ticks at which the task has its name. */
static void print_run(const struct kb_tasks *tasks, const struct kb_slice *slice,
		      uint64_t timestamp)
{
	char buffer[KB_TASK_NAME_BUFFER];

	printf("%14.9f s  %12.3f us  %7" PRIu32 "  %s\n", (double)slice->start / 1e9,
	       (double)(slice->end - slice->start) / 1e3, slice->task_id,
	       kb_tasks_name(tasks, slice->task_id, timestamp, buffer));
}

int main(int argc, char **argv)
{
	const char *path = argc > 1 ? argv[1] : "kbarman.cap";
	uint32_t cpu = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 3;
	const struct kb_walk *walk;
	const struct kb_tasks *tasks;
	struct kb_trace *trace;
	struct kb_slice slice;
	struct kb_error error;
	int more;

	if (kb_trace_open(&trace, path, NULL, &error) || !(tasks = kb_trace_tasks(trace, &error)))
		errx(EXIT_FAILURE, "%s", kb_error_text(&error));
	while ((more = kb_trace_next(trace, &walk, &error)) > 0)
		for (unsigned int i = 0; i < walk->nr_slices; i++)
			if (walk->slices[i].kind == KB_SLICE_RUN && walk->slices[i].core == cpu)
				print_run(tasks, &walk->slices[i], walk->event.timestamp);
	if (more < 0)
		warnx("%s", kb_error_text(&error));
	while (kb_trace_end(trace, &slice))
		if (slice.kind == KB_SLICE_RUN && slice.core == cpu)
			print_run(tasks, &slice, UINT64_MAX);
	kb_trace_close(trace);
	return more < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
