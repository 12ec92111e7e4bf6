/* SPDX-License-Identifier: MIT */
/* Metrics of each CPU over time, from the readings of its counters. */
#ifndef KB_LIB_ANALYSIS_SAMPLES_METRIC_TRACKS_H
#define KB_LIB_ANALYSIS_SAMPLES_METRIC_TRACKS_H

#include <stdbool.h>

#include <kbarman/event.h>

#include "analysis/samples/metric_choice.h"

#define KB_METRIC_TRACKS_MAX	32
#define KB_METRIC_SPAN_NS	10000000	/* a value is that of at least so long a time */
#define KB_METRIC_CORES_MAX	8192		/* further ones, as of hostile captures, have no tracks */

struct kb_metric_core;

struct kb_metric_tracks {
	const struct kb_names *names;
	struct kb_report_metric metrics[KB_METRIC_TRACKS_MAX];
	unsigned int nr;		/* 0: the counters suffice for none */
	struct kb_metric_core *cores;
	uint32_t nr_cores;
	uint16_t *slots;		/* by id of a counter: where its sum is, from 1 on; 0: no
					 * metric needs it */
	unsigned int nr_slots;
};

/* Returns 0 or -ENOMEM. kb_metric_tracks_release() frees what it has, also after an error. */
int kb_metric_tracks_init(struct kb_metric_tracks *tracks, const struct kb_names *names,
			  const struct kb_barman *barman, uint32_t nr_cores);
void kb_metric_tracks_release(struct kb_metric_tracks *tracks);

/*
 * Feed a sample at @ns. Returns whether a span of its CPU ends with it: then @from is when it began,
 * and @values has each metric of it, NAN where it is a part of nothing or the CPU lacks a counter.
 * Without memory no span ends.
 */
bool kb_metric_tracks_feed(struct kb_metric_tracks *tracks, const struct kb_event *sample,
			   int64_t ns, int64_t *from, double values[KB_METRIC_TRACKS_MAX]);

#endif
