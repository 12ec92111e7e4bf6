// SPDX-License-Identifier: MIT
/*
 * Prints the samples of a capture by task, as `kbarman report --sort task` does. The program needs
 * only the installed library:
 *
 *	cc report_tasks.c $(pkg-config --cflags --libs kbarman) -o report_tasks
 *	./report_tasks kbarman.cap
 */
#include <err.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <kbarman/report.h>

#define LEAST	0.5	/* percent; rows below it are summed up */

static double percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

static void print_head(const struct kb_report *report)
{
	uint64_t weight = report->totals.weight;

	printf("# Samples: %" PRIu64 ", ", report->totals.samples);
	if (weight == report->totals.samples)
		puts("counted");
	else
		printf("weighed by %.*s: %" PRIu64 "\n", (int)report->weight_of.length,
		       report->weight_of.data, weight);
	if (report->idle_samples)
		printf("# Idle loop: %.2f%%, %" PRIu64 " samples; the tables leave them out, "
		       "--idle lists them\n", percent(report->idle_weight, weight),
		       report->idle_samples);
	printf("#\n#  Overhead   Samples%s  Task\n#\n",
	       kb_report_ipc(report, NULL, NULL, NULL) ? "    IPC" : "");
}

static void print_row(const struct kb_report *report, const struct kb_sample_row *row)
{
	double ipc;

	printf("%10.2f%%  %8" PRIu64, percent(row->weight, report->totals.weight), row->samples);
	if (!kb_report_ipc(report, &report->samples, row, &ipc))
		printf("  %s\n", row->task);
	else if (isnan(ipc))
		printf("      -  %s\n", row->task);
	else
		printf("  %5.2f  %s\n", ipc, row->task);
}

static void print_samples(const struct kb_report *report)
{
	const struct kb_sample_row *row = report->samples.rows;
	const struct kb_sample_row *end = row + report->samples.nr_work;
	uint64_t weight = report->totals.weight, rest = 0;
	uint32_t nr = 0;

	print_head(report);
	for (; row < end && percent(row->weight, weight) >= LEAST; row++)
		print_row(report, row);
	for (; row < end; row++, nr++)
		rest += row->weight;
	if (nr)
		printf("# %8.2f%%  in %" PRIu32 " more row%s below %g%%: --percent-limit 0 shows "
		       "all\n", percent(rest, weight), nr, nr == 1 ? "" : "s", LEAST);
}

int main(int argc, char **argv)
{
	const struct kb_report_options options = { .size = sizeof(options), .sort = KB_SORT_TASK };
	const struct kb_report *report;
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
	print_samples(report);
	kb_report_destroy(report);
	kb_trace_close(trace);
	return damaged;
}
