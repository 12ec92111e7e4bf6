/* SPDX-License-Identifier: MIT */
/* Which metrics the counters of a capture suffice for. */
#ifndef KB_LIB_ANALYSIS_SAMPLES_METRIC_CHOICE_H
#define KB_LIB_ANALYSIS_SAMPLES_METRIC_CHOICE_H

#include <stdbool.h>

#include <kbarman/barman.h>
#include <kbarman/names.h>
#include <kbarman/report.h>

/* As kb_report_metrics(). @elapsed: there is the time in which the counters counted. */
unsigned int kb_metric_choose(const struct kb_names *names, const struct kb_barman *barman,
			      const char *list, bool elapsed, struct kb_report_metric *metrics,
			      unsigned int max);

/* Does core @core count all that @metric needs? */
bool kb_metric_is_on(const struct kb_report_metric *metric, const struct kb_names *names,
		     uint32_t core);

#endif
