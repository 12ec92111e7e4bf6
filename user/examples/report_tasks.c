// SPDX-License-Identifier: MIT
/*
 * Prints what `kbarman report --sort task` prints. The program needs only the installed library:
 *
 *	cc report_tasks.c $(pkg-config --cflags --libs kbarman) -o report_tasks
 *	./report_tasks kbarman.cap
 *
 * A program that shows a report in another way reads its numbers: see top_symbols.c.
 */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <kbarman/out.h>
#include <kbarman/report_text.h>

int main(int argc, char **argv)
{
	const char *path = argc > 1 ? argv[1] : "kbarman.cap";
	const struct kb_report_options by_task = { .size = sizeof(by_task), .sort = KB_SORT_TASK };
	const struct kb_report_text_options text = { .size = sizeof(text), .capture = path };
	const struct kb_report *report;
	struct kb_trace *trace;
	struct kb_error error;
	struct kb_out *out;
	int damaged;

	if (kb_trace_open(&trace, path, NULL, &error))
		errx(EXIT_FAILURE, "%s", kb_error_text(&error));
	damaged = kb_report_create(&report, trace, &by_task, &error);
	if (damaged < 0)
		errx(EXIT_FAILURE, "%s", kb_error_text(&error));
	if (damaged)
		warnx("%s", kb_error_text(&error));
	if (kb_out_fd(&out, STDOUT_FILENO))
		errx(EXIT_FAILURE, "out of memory");
	if (kb_report_text(report, &text, out, &error))
		errx(EXIT_FAILURE, "%s", kb_error_text(&error));
	kb_out_destroy(out);
	kb_report_destroy(report);
	kb_trace_close(trace);
	return damaged;
}
