// SPDX-License-Identifier: GPL-2.0-only
/* Pure like ring.c: what it needs of its surroundings is in ring_env.h. */
#include "record.h"

static const char lost_text[] = "records lost";

static __always_inline void fill_header(const struct kbarman_ring *ring,
					struct bm_protocol_record_header *header, u32 type,
					u64 timestamp)
{
	header->record_type = type;
	header->core = ring->cpu;
	header->timestamp = timestamp;
}

/*
 * Losses become part of the capture where they happened: in front of the first
 * record that found room again. What finds none itself is told the next time.
 */
static noinline void record_losses(struct kbarman_ring *ring)
{
	struct bm_protocol_custom_counter *counter;
	struct bm_protocol_annotation *bookmark;
	long lost = local_xchg(&ring->unreported, 0);
	struct kbarman_slot slot;
	unsigned long length;

	if (!lost)
		return;
	slot = kbarman_ring_try_reserve(ring, sizeof(*counter));
	counter = slot.record;
	if (!counter) {
		local_add(lost, &ring->unreported);
		return;
	}
	fill_header(ring, &counter->header, BM_RECORD_CUSTOM_COUNTER, slot.timestamp);
	counter->task_id = 0;
	counter->counter = KBARMAN_SERIES_LOST;
	counter->value = lost;
	kbarman_ring_commit(ring);

	length = ALIGN(sizeof(*bookmark) + sizeof(lost_text), sizeof(bm_uintptr));
	slot = kbarman_ring_try_reserve(ring, length);
	bookmark = slot.record;
	if (!bookmark)
		return;
	memset(bookmark, 0, length);
	fill_header(ring, &bookmark->header, BM_RECORD_ANNOTATION, slot.timestamp);
	bookmark->data_length = sizeof(lost_text);
	bookmark->type = BM_ANNOTATION_BOOKMARK;
	memcpy(bookmark->data, lost_text, sizeof(lost_text));
	kbarman_ring_commit(ring);
}

static __always_inline struct kbarman_slot begin(struct kbarman_ring *ring, unsigned long length)
{
	if (unlikely(local_read(&ring->unreported)))
		record_losses(ring);
	return kbarman_ring_reserve(ring, length);
}

void kbarman_record_switch(struct kbarman_ring *ring, u32 task_id,
			   enum bm_task_switch_reason reason, u8 prev_state)
{
	struct {
		struct bm_protocol_task_switch record;
		u8 padding[2];
	} __packed __aligned(4) *block;
	struct kbarman_slot slot = begin(ring, sizeof(*block));

	block = slot.record;
	if (!block)
		return;
	fill_header(ring, &block->record.header, BM_RECORD_TASK_SWITCH, slot.timestamp);
	block->record.task_id = task_id;
	block->record.reason = reason;
	block->record.prev_state = prev_state;
	memset(block->padding, 0, sizeof(block->padding));
	kbarman_ring_commit(ring);
}

void kbarman_record_halt(struct kbarman_ring *ring, bool entered, u8 idle_state)
{
	struct {
		struct bm_protocol_halting_event record;
		u8 padding[6];
	} __packed __aligned(4) *block;
	struct kbarman_slot slot = begin(ring, sizeof(*block));

	block = slot.record;
	if (!block)
		return;
	fill_header(ring, &block->record.header, BM_RECORD_HALTING_EVENT, slot.timestamp);
	block->record.entered_halt = entered;
	block->record.idle_state = idle_state;
	memset(block->padding, 0, sizeof(block->padding));
	kbarman_ring_commit(ring);
}

void kbarman_record_sample(struct kbarman_ring *ring, u32 task_id, unsigned long pc,
			   const u64 *deltas, unsigned int nr_deltas)
{
	struct {
		struct bm_protocol_sample sample;
		bm_uintptr pc;
		u64 deltas[];
	} __packed __aligned(4) *record;
	unsigned long length = sizeof(*record) + nr_deltas * sizeof(*deltas);
	struct kbarman_slot slot = begin(ring, length);

	record = slot.record;
	if (!record)
		return;
	fill_header(ring, &record->sample.header, BM_RECORD_SAMPLE_WITH_PC, slot.timestamp);
	record->sample.task_id = task_id;
	record->sample.num_custom_counters = 0;
	record->pc = pc;
	memcpy(record->deltas, deltas, nr_deltas * sizeof(*deltas));
	kbarman_ring_commit(ring);
}
