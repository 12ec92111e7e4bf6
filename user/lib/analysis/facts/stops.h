/* SPDX-License-Identifier: MIT */
/*
 * When and why the first counter of a CPU stopped. The sources are the values of the series
 * "Counters stopped" (the reason, from the stop to the counter's next overflow) and the facts
 * kbarman.stopped.CPU.REASON. The kernel does not say when within that time the counter went
 * on, so the times are upper limits.
 */
#ifndef KB_LIB_ANALYSIS_FACTS_STOPS_H
#define KB_LIB_ANALYSIS_FACTS_STOPS_H

#include <stdbool.h>
#include <stdint.h>

#include <kbarman/report.h>

#define KB_STOP_SERIES	"Counters stopped"

struct kb_stops;

/* @losses: those of the capture, which are needed no longer afterwards. */
int kb_stops_create(struct kb_stops **out, const struct kb_header *header,
		    const struct kb_losses *losses, struct kb_error *err);
void kb_stops_destroy(struct kb_stops *stops);

/*
 * Add each event in the order of the capture, with its time. Returns true for a sample whose
 * counters do not cover the same time, because the first one stopped since the sample before
 * it.
 */
bool kb_stops_feed(struct kb_stops *stops, const struct kb_event *event, int64_t ns);

/* The number of that series in a capture; UINT32_MAX: there is none. */
uint32_t kb_stops_series(const struct kb_header *header);

/* From @event on its CPU is offline. @series: kb_stops_series(). */
bool kb_stops_offline(const struct kb_event *event, uint32_t series);

/* Call it after the last event: counters that are stopped stay so until @last, ns. */
void kb_stops_end(struct kb_stops *stops, int64_t last);

/* Stop number @i, ordered by CPU and reason; false: there are no more. */
bool kb_stops_get(const struct kb_stops *stops, uint32_t i, struct kb_stop *stop);

/* The name of a reason of enum kbarman_stop, as in the facts; NULL: no such reason. */
const char *kb_stop_name(unsigned int reason);

#endif
