/* SPDX-License-Identifier: MIT */
/* Metrics: what counts of events say in relation to each other, such as instructions a cycle. */
#ifndef KBARMAN_METRICS_H
#define KBARMAN_METRICS_H

#include <stdbool.h>
#include <stddef.h>

#include <kbarman/error.h>

#ifdef __cplusplus
extern "C" {
#endif

#define KB_METRIC_EVENTS_MAX	8	/* of one metric */

/*
 * A metric is a fact that somebody published. Some have several rows, one for each PMU architecture
 * whose events differ: the name is then the same, the events are not.
 */
struct kb_metric {
	const char *name;	/* "ipc" */
	const char *group;	/* of metrics that belong together, such as "topdown"; "": none */
	const char *formula;	/* of names of events, $constants and numbers, with + - * / and
				 * brackets. A minus has a space in front */
	const char *unit;	/* of the value: "instruction/cycle"; "1": a part of a whole */
	const char *what;	/* one line for people */
	const char *source;	/* where the formula was published */
};

/* All metrics; the last one has no name. */
const struct kb_metric *kb_metrics_all(void);

/*
 * Can its events be recorded? Intel's parts of the slots can only be counted: Linux counts them in a
 * group that the slots lead, and takes no samples of such a group.
 */
bool kb_metric_can_be_recorded(const struct kb_metric *metric);

/*
 * Is @metric in the comma-separated list of names of metrics and of groups? @list "all": each is.
 */
bool kb_metric_is_in(const struct kb_metric *metric, const char *list);

/* Check that each word of @list is a metric or a group. -ENOENT: @err names the first that is none. */
int kb_metrics_check(const char *list, struct kb_error *err);

/*
 * The names of the events in the formula, each once, in its order; kb_events_parse() takes them.
 * Returns their number. The names are copied to @text, of @size bytes, of which 512 are enough.
 */
unsigned int kb_metric_events(const struct kb_metric *metric,
			      const char *events[KB_METRIC_EVENTS_MAX], char *text, size_t size);

/* What is known of the count of an event, or of a constant. */
struct kb_metric_count {
	double value;		/* extrapolated, if it was counted for a part of the time only */
	double part;		/* of the time in which it was counted: above 0, at most 1 */
	unsigned int together;	/* events of one number were counted at the same moments; 0: alone */
	bool has_error;		/* the true count is not further off than: */
	double error;
};

/*
 * The count of @name, an event or a constant of the formula: $slots (of a cycle of this CPU) or
 * $elapsed (ns). Returns false if it is not known.
 */
typedef bool (*kb_metric_lookup)(void *context, const char *name, struct kb_metric_count *count);

struct kb_metric_value {
	double value;
	/*
	 * What the value may truly be, if events were counted at different moments, or if the errors
	 * of counts are known. Without an error, it is assumed that an event occurred at a rate from
	 * 0 to twice that of the rest while it was not counted. If all events were counted together, the metric is that of these
	 * moments, and both bounds are the value. A bound may be infinite.
	 */
	double low, high;
	double part;		/* of the time that was counted, the least of the events; 1: all */
};

/*
 * Returns 0; -ENOENT: a count is not known; -ERANGE: the value is none, because it is a part of
 * nothing, such as of 0 cycles.
 */
int kb_metric_evaluate(const struct kb_metric *metric, kb_metric_lookup lookup, void *context,
		       struct kb_metric_value *value);

/* Does the counter @counter, such as "cpu_core/cycles/u", count the event @name of a formula? */
bool kb_metric_is_event(const char *counter, const char *name);

/* The PMU in front of the slash of a counter's name: its length, 0 if there is none. */
size_t kb_metric_pmu(const char *counter);

/* A value as people read it: "1.234", or "12.34%" if the unit is 1. */
const char *kb_metric_text(const struct kb_metric *metric, double value, char text[32]);

#ifdef __cplusplus
}
#endif

#endif
