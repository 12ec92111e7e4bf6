// SPDX-License-Identifier: MIT
/*
 * Prints the ten functions of a capture that have the most samples. The program needs only the
 * installed library:
 *
 *	cc top_symbols.c $(pkg-config --cflags --libs kbarman) -o top_symbols
 *	./top_symbols kbarman.cap
 */
#include <err.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <kbarman/report.h>

int main(int argc, char **argv)
{
	const struct kb_report_options options = {
		.size = sizeof(options), .sort = KB_SORT_IMAGE | KB_SORT_SYMBOL, .count = true,
	};
	const struct kb_report *report;
	struct kb_sample_row row;
	struct kb_trace *trace;
	struct kb_error error;
	int damaged;

	if (kb_trace_open(&trace, argc > 1 ? argv[1] : "kbarman.cap", NULL, &error))
		errx(EXIT_FAILURE, "%s", kb_error_text(&error));
	damaged = kb_report_create(&report, trace, &options, &error);
	if (damaged < 0)
		errx(EXIT_FAILURE, "%s", kb_error_text(&error));
	if (damaged)
		warnx("%s", kb_error_text(&error));
	for (uint32_t i = 0; i < report->samples.nr_work && i < 10; i++) {
		row = kb_report_sample(&report->samples, i);
		printf("%8" PRIu64 "  %s  %s\n", row.samples, row.image_base,
		       *row.symbol ? row.symbol : "[unknown]");
	}
	kb_report_destroy(report);
	kb_trace_close(trace);
	return damaged;
}
