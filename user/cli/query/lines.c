// SPDX-License-Identifier: MIT
/* The reports that a query has as tables: the lines that `kbarman report --json` prints. */
#include <kbarman/latency.h>
#include <kbarman/ended.h>
#include <kbarman/waits.h>

#include "cli/query/lines.h"
#include "cli/report/print.h"

#define DEFAULT_SORT	(KB_SORT_TASK | KB_SORT_IMAGE | KB_SORT_SYMBOL)

static int put_report(struct kb_trace *trace, bool calls, struct kb_out *out, struct kb_error *err)
{
	struct report report = {
		.how = { .size = sizeof(report.how), .sort = DEFAULT_SORT, .call_graph = calls },
		.metrics = "all",
		.trace = trace,
	};
	int ret = kb_report_create(&report.got, trace, &report.how, err);

	if (ret < 0)
		return ret;
	/* The report has asked for these, so they are there. */
	report.barman = kb_trace_barman(trace);
	report.header = kb_trace_header(trace);
	report.tasks = kb_trace_tasks(trace, NULL);
	report.names = kb_trace_names(trace, NULL);
	report.nr_metrics = kb_report_metrics(report.got, report.metrics, report.rows,
					      REPORT_METRICS_MAX);
	report_put_json(&report, out);
	kb_report_destroy(report.got);
	return kb_out_error(out);
}

static int put_latency(struct kb_trace *trace, struct kb_out *out, struct kb_error *err)
{
	const struct report report = { .latency = true, .irq = true };
	const struct kb_latency *got;
	int ret = kb_latency_create(&got, trace, NULL, err);

	if (ret < 0)
		return ret;
	report_put_latency(&report, got, trace, out);
	kb_latency_destroy(got);
	return kb_out_error(out);
}

static int put_waits(struct kb_trace *trace, struct kb_out *out, struct kb_error *err)
{
	const struct kb_waits *got;
	int ret = kb_waits_create(&got, trace, NULL, err);

	if (ret < 0)
		return ret;
	report_put_waits(got, trace, out);
	kb_waits_destroy(got);
	return kb_out_error(out);
}

static int put_classes(struct kb_trace *trace, struct kb_out *out, struct kb_error *err)
{
	const struct kb_classes *got;
	int ret = kb_classes_create(&got, trace, NULL, err);

	if (ret < 0)
		return ret;
	report_put_classes(got, out);
	kb_classes_destroy(got);
	return kb_out_error(out);
}

static int put_ended(struct kb_trace *trace, enum kb_what what, struct kb_out *out, struct kb_error *err)
{
	const struct kb_ended_options how = { .size = sizeof(how), .what = what };
	const struct kb_ended *got;
	int ret = kb_ended_create(&got, trace, &how, err);

	if (ret < 0)
		return ret;
	report_put_ended(got, out);
	kb_ended_destroy(got);
	return kb_out_error(out);
}

int query_make_lines(void *context, enum kb_query_lines which, struct kb_trace *trace,
		     struct kb_out *out, struct kb_error *err)
{
	(void)context;
	if (which == KB_QUERY_LATENCY)
		return put_latency(trace, out, err);
	if (which == KB_QUERY_WAITS)
		return put_waits(trace, out, err);
	if (which == KB_QUERY_CLASSES)
		return put_classes(trace, out, err);
	if (which == KB_QUERY_SYSCALLS)
		return put_ended(trace, KB_WHAT_SYSCALL, out, err);
	if (which == KB_QUERY_FAULTS)
		return put_ended(trace, KB_WHAT_FAULT, out, err);
	if (which == KB_QUERY_BLOCK)
		return put_ended(trace, KB_WHAT_BLOCK, out, err);
	return put_report(trace, which == KB_QUERY_CALLS, out, err);
}
