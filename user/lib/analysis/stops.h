/* SPDX-License-Identifier: MIT */
/*
 * When the first counter of a CPU stood still, and why: by the values of the series "Counters
 * stopped", which is the reason from the stop to the counter's next overflow, and by the facts
 * kbarman.stopped.CPU.REASON. The kernel does not say when within that time the counter went on,
 * so the times are the most that it can have been.
 */
#ifndef KB_LIB_ANALYSIS_STOPS_H
#define KB_LIB_ANALYSIS_STOPS_H

#include <stdbool.h>
#include <stdint.h>

#include <kbarman/barman.h>

#define KB_STOP_SERIES	"Counters stopped"

/* The stops of one CPU for one reason. */
struct kb_stop {
	uint32_t core;
	const char *reason;	/* as in the fact's name */
	uint64_t times;
	uint64_t ns;		/* of all of them, as far as the records tell; 0: they do not */
	int64_t first, last;	/* ns: the first one's beginning, the last one's end; if ns */
};

struct kb_stops;

int kb_stops_create(struct kb_stops **out, const struct kb_barman *barman, struct kb_error *err);
void kb_stops_destroy(struct kb_stops *stops);

/*
 * Each event in the order of the capture, with its time. True for a sample whose counters do not
 * cover the same time, as the first one stood still since the sample before it.
 */
bool kb_stops_feed(struct kb_stops *stops, const struct kb_event *event, int64_t ns);

/* After the last event: what stands still yet does so until @last, ns. */
void kb_stops_end(struct kb_stops *stops, int64_t last);

/* Stop number @i that there was, by CPU and reason; false: there is none of that number. */
bool kb_stops_get(const struct kb_stops *stops, uint32_t i, struct kb_stop *stop);

/* The reason of enum kbarman_stop, as in the facts' names; NULL: there is none of that number. */
const char *kb_stop_name(unsigned int reason);

/* What to do against stops of that reason, a clause in the imperative; never NULL. */
const char *kb_stop_advice(const char *reason);

#endif
