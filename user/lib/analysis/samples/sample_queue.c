// SPDX-License-Identifier: MIT
/*
 * In the first half of the queue the buckets of symbol tables are prefetched, in the second
 * half their content.
 */
#include "analysis/samples/sample_queue.h"

static struct kb_sample *sample_at(struct kb_sample_queue *queue, uint64_t number)
{
	return &queue->samples[number % KB_SAMPLE_QUEUE];
}

const struct kb_event *kb_sample_queue_take(struct kb_sample_queue *queue)
{
	return queue->first == queue->next ? NULL : &sample_at(queue, queue->first++)->event;
}

const struct kb_event *kb_sample_queue_put(struct kb_sample_queue *queue,
					   struct kb_symbolizer *symbolizer,
					   const struct kb_event *event)
{
	struct kb_sample *sample = sample_at(queue, queue->next);
	const struct kb_ahead *ahead;
	uint32_t i;

	if (event->sample.nr_chain || event->sample.nr_counters > KB_SAMPLE_COUNTERS)
		return event;
	sample->event = *event;
	sample->event.sample.nr_custom = 0;
	sample->event.sample.counters = sample->counters;
	for (i = 0; i < event->sample.nr_counters; i++)
		sample->counters[i] = event->sample.counters[i];
	kb_symbolizer_ahead(symbolizer, event->task_id, event->timestamp, event->sample.pc,
			    &sample->ahead);
	queue->next++;
	if (queue->next - queue->first < KB_SAMPLE_QUEUE)
		return NULL;
	ahead = &sample_at(queue, queue->next - KB_SAMPLE_QUEUE / 2)->ahead;
	if (ahead->symtab)
		kb_symtab_fetch_pieces(ahead->symtab, ahead->address);
	return kb_sample_queue_take(queue);
}
