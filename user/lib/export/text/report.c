// SPDX-License-Identifier: MIT
/* The report for people: the order of its parts. */

#include "base/options.h"
#include "export/text/report_parts.h"

#define PERCENT_LIMIT	0.5	/* rows below this share are summed up in one line */

static void put_samples(const struct report_text *report)
{
	if (!report->got->totals.samples && !report->got->filtered) {
		text_put_title(report, "No samples with an address");
		return;
	}
	text_put_weight(report);
	text_put_symbols(report);
	text_put_task_samples(report);
	if (report->got->calls.nodes)
		text_put_tree(report, &report->got->calls, false);
}

static void put_scheduling(const struct report_text *report)
{
	const struct kb_report *got = report->got;

	if (!got->events[KB_EVENT_TASK_SWITCH]) {
		text_put_title(report, "No task switches");
		return;
	}
	text_put_task_times(report);
	text_put_waits(report, "Longest waits (times in ms since the beginning)", got->waits,
		       got->nr_waits);
	text_put_waits(report,
		       "Longest sleeps, until an event or a time (times in ms since the "
		       "beginning)",
		       got->sleeps, got->nr_sleeps);
	if (got->calls.nodes && got->waiting_has_chains)
		text_put_tree(report, &got->waiting, true);
	text_put_cpus(report);
}

int kb_report_text(const struct kb_report *report, const struct kb_report_text_options *options,
		   struct kb_out *out, struct kb_error *err)
{
	const struct reading *reading = (const struct reading *)report;
	struct report_text text = {
		.out = out,
		.got = report,
		.how = &reading->how,
		.filter = reading->how.filter,
		.trace = reading->trace,
		.barman = kb_trace_barman(reading->trace),
		.header = reading->header,
		.tasks = reading->tasks,
		.names = reading->names,
	};
	int ret = KB_OPTIONS(&text.options, options, err);

	if (ret)
		return ret;
	if (!text.options.has_percent_limit)
		text.options.percent_limit = PERCENT_LIMIT;
	if (text.options.metrics)
		text.nr_metrics = kb_report_metrics(report, text.options.metrics, text.metrics,
						    TEXT_METRICS_MAX);
	text_put_head(&text);
	text_put_losses(&text);
	text_put_stops(&text);
	text_put_damage(&text, report->damaged);
	text_put_only(&text, text.options.filter);
	text_put_partial(&text);
	if (report->last.nr)
		text_put_last(&text);
	put_samples(&text);
	if (report->counts.hot)
		text_put_task_counts(&text);
	put_scheduling(&text);
	if (report->events[KB_EVENT_HALT])
		text_put_idle(&text);
	else
		text_put_title(&text, "No idling");
	return text_end(&text, 0, err);
}
