// SPDX-License-Identifier: MIT
/*
 * Prints the samples of a running flight recorder as they come: each second those since the last
 * time. What was read of programs and of the kernel is kept. The program needs only the installed
 * library, and the rights to read /dev/kbarman:
 *
 *	cc live_tail.c $(pkg-config --cflags --libs kbarman) -o live_tail
 *	kbarman flight start && ./live_tail
 */
#include <err.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <kbarman/recorder.h>

/* Prints the samples behind @since (ticks), and returns when the last record was. */
static uint64_t print_new(struct kb_trace *trace, uint64_t since)
{
	char buffer[KB_TASK_NAME_BUFFER];
	const struct kb_frame *frame;
	const struct kb_tasks *tasks;
	const struct kb_walk *walk;
	struct kb_error error;
	uint64_t last = since;

	tasks = kb_trace_tasks(trace, &error);
	if (!tasks || !kb_trace_symbolizer(trace, &error))
		errx(EXIT_FAILURE, "%s", kb_error_text(&error));
	while (kb_trace_next(trace, &walk, &error) > 0) {
		const struct kb_event *event = &walk->event;

		if (event->timestamp > last)
			last = event->timestamp;
		if (event->timestamp <= since || event->type != KB_EVENT_SAMPLE ||
		    !event->sample.has_pc || kb_trace_frames(trace, 0, &frame) < 1)
			continue;
		printf("%14.6f s  CPU %-3" PRIu32 "  %-15s  %s (%s)\n", (double)walk->ns / 1e9,
		       event->core,
		       kb_tasks_name(tasks, event->task_id, event->timestamp, buffer),
		       *frame->symbol.name ? frame->symbol.name : "[unknown]",
		       frame->symbol.image_base);
	}
	return last;
}

int main(int argc, char **argv)
{
	unsigned long times = argc > 1 ? strtoul(argv[1], NULL, 10) : 0;
	struct kb_symbol_options symbols = { .size = sizeof(symbols) };
	struct kb_trace_options options = { .size = sizeof(options), .symbols = &symbols };
	struct kb_device *device;
	struct kb_trace *trace;
	struct kb_error error;
	uint64_t last = 0;

	if (kb_device_open(&device, &error) ||
	    kb_symbol_cache_create(&symbols.cache, NULL, &error))
		errx(EXIT_FAILURE, "%s", kb_error_text(&error));
	for (unsigned long i = 0; !times || i < times; i++) {
		sleep(1);
		if (kb_trace_open_device(&trace, device, &options, &error))
			errx(EXIT_FAILURE, "%s", kb_error_text(&error));
		last = print_new(trace, last);
		fflush(stdout);
		kb_trace_close(trace);
	}
	kb_symbol_cache_destroy(symbols.cache);
	kb_device_close(device);
	return EXIT_SUCCESS;
}
