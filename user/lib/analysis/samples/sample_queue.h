/* SPDX-License-Identifier: MIT */
/*
 * A queue of samples that wait while the symbols they need are prefetched, in the order of
 * arrival. Samples with chains or with many counters do not wait, so samples leave in a
 * different order: only for users that do not depend on the order.
 */
#ifndef KB_LIB_ANALYSIS_SAMPLES_SAMPLE_QUEUE_H
#define KB_LIB_ANALYSIS_SAMPLES_SAMPLE_QUEUE_H

#include <kbarman/event.h>

#include "sym/symbolizer/ahead.h"

#define KB_SAMPLE_QUEUE		32U	/* samples, a power of two */
#define KB_SAMPLE_COUNTERS	8U	/* largest number of counters of a waiting sample */

/* An empty queue is all zero. */
struct kb_sample_queue {
	struct kb_sample {
		struct kb_event event;
		uint64_t counters[KB_SAMPLE_COUNTERS];
		struct kb_ahead ahead;
	} samples[KB_SAMPLE_QUEUE];	/* sample number n is at n % KB_SAMPLE_QUEUE */
	uint64_t first, next;		/* numbers of the waiting samples: [first, next) */
};

/*
 * Add a sample with a PC, without its custom values. Returns the sample whose turn it is, which
 * may be @event itself, or NULL. The result holds until the next call.
 */
const struct kb_event *kb_sample_queue_put(struct kb_sample_queue *queue,
					   struct kb_symbolizer *symbolizer,
					   const struct kb_event *event);

/* Remove the next sample; NULL: the queue is empty. */
const struct kb_event *kb_sample_queue_take(struct kb_sample_queue *queue);

/* What was prepared for @event, which has left the queue; NULL: it did not wait. */
static inline const struct kb_ahead *kb_sample_queue_ahead(const struct kb_sample_queue *queue,
							   const struct kb_event *event)
{
	const struct kb_sample *sample = (const struct kb_sample *)event;	/* its first member */

	return sample >= queue->samples && sample < queue->samples + KB_SAMPLE_QUEUE ?
		&sample->ahead : NULL;
}

#endif
