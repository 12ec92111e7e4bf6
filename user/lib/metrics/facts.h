/* SPDX-License-Identifier: MIT */
/* What events count: the units of the names in formulas. */
#ifndef KB_LIB_METRICS_FACTS_H
#define KB_LIB_METRICS_FACTS_H

/* "cycle"; NULL: no such name in the table. */
const char *kb_metric_unit_of(const char *name);

/* The name that formulas use for an event that has several, such as cycles for cpu_cycles. */
const char *kb_metric_usual_name(const char *name);

#endif
