/* SPDX-License-Identifier: MIT */
/*
 * Samples that wait until the symbols they will be asked for are near: a queue of some, in
 * the order in which they came. Samples with chains do not wait, nor do those with many
 * counters; so who uses this can't care for the order.
 */
#ifndef KB_LIB_ANALYSIS_SAMPLE_QUEUE_H
#define KB_LIB_ANALYSIS_SAMPLE_QUEUE_H

#include <kbarman/event.h>

#include "sym/ahead.h"

#define KB_SAMPLE_QUEUE		32U	/* samples, a power of two */
#define KB_SAMPLE_COUNTERS	8U	/* of one that waits, at most */

/* All zero: an empty one. */
struct kb_sample_queue {
	struct kb_sample {
		struct kb_event event;
		uint64_t counters[KB_SAMPLE_COUNTERS];
		struct kb_ahead ahead;
	} samples[KB_SAMPLE_QUEUE];	/* of number n at n % KB_SAMPLE_QUEUE */
	uint64_t first, next;		/* numbers: those waiting */
};

/*
 * Let a sample with a PC wait, without its custom values. Returns the one whose turn it is,
 * which may be @event itself, or NULL. It holds until the next call.
 */
const struct kb_event *kb_sample_queue_put(struct kb_sample_queue *queue,
					   struct kb_symbolizer *symbolizer,
					   const struct kb_event *event);

/* The next one without another that takes its place; NULL: none is left. */
const struct kb_event *kb_sample_queue_take(struct kb_sample_queue *queue);

#endif
