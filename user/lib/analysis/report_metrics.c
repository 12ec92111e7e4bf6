// SPDX-License-Identifier: MIT
/*
 * Metrics of the rows of a report. What a capture counted was counted all the time, so they are
 * exact.
 */
#include <math.h>
#include <string.h>

#include "analysis/metric_choice.h"
#include "analysis/report_inside.h"

unsigned int kb_report_metrics(const struct kb_report *report, const char *list,
			       struct kb_report_metric *metrics, unsigned int max)
{
	const struct reading *reading = (const struct reading *)report;

	/* The time that was recorded is none of what filters choose. */
	return kb_metric_choose(reading->names, reading->trace->barman, list, !reading->filters, metrics, max);
}

struct row {
	const struct kb_report *report;
	const struct kb_report_metric *metric;
	const struct kb_sample_table *table;
	const struct kb_sample_row *row;
	uint32_t sets;			/* of samples that have all counters of the metric */
	unsigned int nr;
};

static bool sum_of(void *context, const char *name, struct kb_metric_count *count)
{
	struct row *row = context;

	count->value = !strcmp(name, "$slots") ? row->metric->slots :
		       *name == '$' ? (double)row->report->duration_ns :
		       (double)kb_hot_counter_of(row->table->hot, row->row,
						 row->metric->ids[row->nr++], row->sets);
	return true;
}

double kb_report_metric_value(const struct kb_report *report, const struct kb_report_metric *metric,
			      const struct kb_sample_table *table, const struct kb_sample_row *row)
{
	const struct reading *reading = (const struct reading *)report;
	struct row look = { report, metric, table, row,
			    kb_count_sets_with(reading->sets, metric->ids, metric->nr_ids), 0 };
	struct kb_metric_value value;

	return kb_metric_evaluate(metric->metric, sum_of, &look, &value) ? NAN : value.value;
}
