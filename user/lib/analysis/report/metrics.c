// SPDX-License-Identifier: MIT
/*
 * Metrics of the rows of a report. They are exact if their counters counted all the time. Of counters
 * that take turns, the counts of a task and their errors are known.
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "analysis/report/inside.h"
#include "analysis/samples/metric_choice.h"

unsigned int kb_report_metrics(const struct kb_report *report, const char *list,
			       struct kb_report_metric *metrics, unsigned int max)
{
	const struct reading *reading = (const struct reading *)report;

	/* The time that was recorded is none of what filters choose. */
	return kb_metric_choose(reading->names, reading->trace->barman, list, !reading->filters, metrics, max);
}

bool kb_report_metric_is_rotated(const struct kb_report *report,
				 const struct kb_report_metric *metric)
{
	for (unsigned int i = 0; i < metric->nr_ids; i++)
		if (kb_report_is_rotated(report, metric->ids[i]))
			return true;
	return false;
}

struct row {
	const struct kb_report *report;
	const struct kb_report_metric *metric;
	const struct kb_sample_table *table;
	const struct kb_sample_row *row;
	uint32_t sets;			/* of samples that have all counters of the metric */
	bool rotated;			/* one of them takes turns */
	unsigned int nr;
};

/* A count of the whole time: the counters do not share their samples. */
static bool count_of(const struct row *row, uint32_t id, struct kb_metric_count *count)
{
	struct kb_report_count rotated;

	if (!kb_report_is_rotated(row->report, id)) {
		count->value = (double)kb_hot_counter(row->table->hot, row->row, id);
		return true;
	}
	rotated = kb_report_rotated(row->report, row->row, id);
	*count = (struct kb_metric_count){ .value = rotated.value, .part = rotated.part,
					   .has_error = true, .error = rotated.error };
	return !isnan(rotated.value);
}

static bool sum_of(void *context, const char *name, struct kb_metric_count *count)
{
	struct row *row = context;

	if (row->rotated && *name != '$')
		return count_of(row, row->metric->ids[row->nr++], count);
	count->value = !strcmp(name, "$slots") ? row->metric->slots :
		       *name == '$' ? (double)row->report->duration_ns :
		       (double)kb_hot_counter_of(row->table->hot, row->row,
						 row->metric->ids[row->nr++], row->sets);
	return true;
}

int kb_report_metric_bounds(const struct kb_report *report, const struct kb_report_metric *metric,
			    const struct kb_sample_table *table, const struct kb_sample_row *row,
			    struct kb_metric_value *value)
{
	const struct reading *reading = (const struct reading *)report;
	struct row look = { .report = report, .metric = metric, .table = table, .row = row,
			    .sets = kb_count_sets_with(reading->sets, metric->ids, metric->nr_ids) };

	look.rotated = kb_report_metric_is_rotated(report, metric);
	if (look.rotated && table != &report->counts)
		return -ENOENT;
	return kb_metric_evaluate(metric->metric, sum_of, &look, value);
}

double kb_report_metric_value(const struct kb_report *report, const struct kb_report_metric *metric,
			      const struct kb_sample_table *table, const struct kb_sample_row *row)
{
	struct kb_metric_value value;

	return kb_report_metric_bounds(report, metric, table, row, &value) ? NAN : value.value;
}
