// SPDX-License-Identifier: GPL-2.0-only
/* Pure like ring.c: ring_env.h declares all that this file needs of the kernel. */
#include "ring/record.h"

static const char lost_text[] = "records lost";

/*
 * Writes how many records were lost for @reason. False: there is no space for that, and it is told
 * later.
 */
static bool loss_record(struct kbarman_ring *ring, enum kbarman_loss reason)
{
	struct record {
		struct bm_protocol_custom_counter counter;
		struct bm_kbarman_loss loss;
	} __packed __aligned(4);
	u64 since;
	long lost = kbarman_ring_take_owed(ring, reason, &since);
	struct kbarman_slot slot;
	struct record *record;

	if (!lost)
		return true;
	slot = kbarman_ring_try_reserve(ring, sizeof(*record));
	record = slot.record;
	if (!record) {
		kbarman_ring_owe(ring, reason, lost, since);
		return false;
	}
	kbarman_fill_header(ring, record, BM_RECORD_CUSTOM_COUNTER, slot.timestamp);
	record->counter.task_id = 0;
	record->counter.counter = KBARMAN_SERIES_LOST;
	record->counter.value = lost;
	record->loss = (struct bm_kbarman_loss) {
		.detail = { .id = reason, .cpu = ring->cpu, .what = BM_KBARMAN_LOST },
		.begin = min(since, slot.timestamp),
	};
	kbarman_ring_commit(ring, slot.begin);
	return true;
}

static void losses_bookmark(struct kbarman_ring *ring)
{
	unsigned long length = ALIGN(sizeof(struct bm_protocol_annotation) + sizeof(lost_text),
				     sizeof(bm_uintptr));
	struct kbarman_slot slot = kbarman_ring_try_reserve(ring, length);
	struct bm_protocol_annotation *bookmark = slot.record;

	if (!bookmark)
		return;
	memset(bookmark, 0, length);
	kbarman_fill_header(ring, bookmark, BM_RECORD_ANNOTATION, slot.timestamp);
	bookmark->data_length = sizeof(lost_text);
	bookmark->type = BM_ANNOTATION_BOOKMARK;
	memcpy(bookmark->data, lost_text, sizeof(lost_text));
	kbarman_ring_commit(ring, slot.begin);
}

/*
 * Writes of the losses before the next record, of each reason once. False: there is no space. Then
 * the next record is lost as well, even if it is small enough: it would hide where the gap is.
 */
static noinline bool losses_record(struct kbarman_ring *ring)
{
	enum kbarman_loss reason;
	int i;

	for (i = 0; i < KBARMAN_LOST_REASONS; i++) {
		reason = kbarman_ring_owes(ring);
		if (reason == KBARMAN_LOST_REASONS)
			break;
		if (!loss_record(ring, reason)) {
			reason = kbarman_ring_overwrites(ring) ? KBARMAN_LOST_NESTED :
								 KBARMAN_LOST_FULL;
			if (kbarman_ring_lose(ring, reason))
				kbarman_ring_owe(ring, reason, 1, ring_clock());
			return false;
		}
	}
	if (i)
		losses_bookmark(ring);
	return true;
}

static struct kbarman_slot record_begin(struct kbarman_ring *ring, unsigned long length)
{
	if (unlikely(kbarman_ring_is_owing(ring)) && !losses_record(ring))
		return (struct kbarman_slot) { .record = NULL };
	return kbarman_ring_reserve(ring, length);
}

/* A record that is being written. */
struct record_slot {
	struct kbarman_short it;	/* it.slot.record: NULL, the record is lost */
	bool is_short;
};

/* Of a record that the inlined short way can't write. False: there is nothing to write to. */
static __always_inline bool slow_begin(struct kbarman_ring *ring, unsigned long length,
				       struct record_slot *slot)
{
	if (!kbarman_ring_ready(ring))
		return false;
	slot->is_short = kbarman_ring_reserve_called(ring, length, &slot->it);
	if (!slot->is_short)
		slot->it.slot = record_begin(ring, length);
	return slot->it.slot.record;
}

static __always_inline void slot_commit(struct kbarman_ring *ring, const struct record_slot *slot)
{
	if (slot->is_short)
		kbarman_ring_commit_short(ring, &slot->it);
	else
		kbarman_ring_commit(ring, slot->it.slot.begin);
}

noinline void kbarman_record_small_slow(struct kbarman_ring *ring, u32 type, u64 tail)
{
	struct record_slot slot;

	if (!slow_begin(ring, sizeof(struct kbarman_small_record), &slot))
		return;
	kbarman_fill_small(ring, slot.it.slot, type, tail);
	slot_commit(ring, &slot);
}

noinline void kbarman_record_object_slow(struct kbarman_ring *ring, u64 tail,
					 struct kbarman_object object)
{
	struct record_slot slot;

	if (!slow_begin(ring, sizeof(struct kbarman_object_record), &slot))
		return;
	kbarman_fill_object(ring, slot.it.slot, tail, object);
	slot_commit(ring, &slot);
}

noinline void kbarman_record_detail_slow(struct kbarman_ring *ring, u64 task_and_series, u64 value,
					 struct kbarman_detail detail)
{
	struct record_slot slot;

	if (!slow_begin(ring, sizeof(struct kbarman_detail_record), &slot))
		return;
	kbarman_fill_detail(ring, slot.it.slot, task_and_series, value, detail);
	slot_commit(ring, &slot);
}

noinline void kbarman_record_wakeup_slow(struct kbarman_ring *ring, u64 task_and_series,
					 struct kbarman_detail detail, struct kbarman_object object)
{
	struct record_slot slot;

	if (!slow_begin(ring, sizeof(struct kbarman_wakeup_record), &slot))
		return;
	kbarman_fill_wakeup(ring, slot.it.slot, task_and_series, detail, object);
	slot_commit(ring, &slot);
}

noinline void kbarman_record_ended_slow(struct kbarman_ring *ring, u64 task_and_series,
					struct kbarman_detail detail, const struct kbarman_ended *ended,
					unsigned int nr_numbers)
{
	struct record_slot slot;

	if (!slow_begin(ring, kbarman_ended_bytes(nr_numbers), &slot))
		return;
	kbarman_fill_ended(ring, slot.it.slot, task_and_series, detail, ended, nr_numbers);
	slot_commit(ring, &slot);
}

void kbarman_record_switch_chain(struct kbarman_ring *ring, u32 task_id,
				 enum bm_task_switch_reason reason, unsigned int prev_state,
				 const struct bm_kbarman_callchain *chain,
				 unsigned long chain_bytes, const struct kbarman_object *object)
{
	struct kbarman_slot slot = record_begin(ring, sizeof(struct kbarman_small_record) + chain_bytes +
						      (object ? sizeof(*object) : 0));
	u32 flags = object ? KBARMAN_LAST_BYTE(BM_TASK_SWITCH_OBJECT) : 0;

	static_assert(sizeof(struct kbarman_small_record) == BM_TASK_SWITCH_CHAIN_OFFSET);

	if (!slot.record)
		return;
	kbarman_fill_small(ring, slot, BM_RECORD_TASK_SWITCH,
			   KBARMAN_TWO_WORDS(task_id, kbarman_reason_state(reason, prev_state) | flags));
	memcpy(slot.record + sizeof(struct kbarman_small_record), chain, chain_bytes);
	if (object)
		memcpy(slot.record + sizeof(struct kbarman_small_record) + chain_bytes, object,
		       sizeof(*object));
	kbarman_ring_commit(ring, slot.begin);
}

/* Begin a sample of @length bytes: what samples with PC and without have in common. */
static __always_inline void *sample_begin(struct kbarman_ring *ring, u32 type, u32 task_id,
					  unsigned long length, struct record_slot *slot)
{
	struct bm_protocol_sample *sample;

	slot->is_short = kbarman_ring_reserve_short(ring, length, &slot->it) ||
			 kbarman_ring_reserve_called(ring, length, &slot->it);
	if (!slot->is_short)
		slot->it.slot = record_begin(ring, length);
	sample = slot->it.slot.record;
	if (sample) {
		kbarman_fill_header(ring, sample, type, slot->it.slot.timestamp);
		sample->task_id = task_id;
		sample->num_custom_counters = 0;
	}
	return sample;
}

bool kbarman_record_sample(struct kbarman_ring *ring, u32 task_id, unsigned long pc,
			   const u64 *deltas, unsigned int nr_deltas,
			   const struct bm_kbarman_callchain *chain, unsigned long chain_bytes)
{
	struct sample {
		struct bm_protocol_sample sample;
		bm_uintptr pc;
		u64 deltas[];
	} __packed __aligned(4);
	unsigned long base = sizeof(struct sample) + nr_deltas * sizeof(*deltas);
	struct record_slot slot;
	struct sample *record = sample_begin(ring, BM_RECORD_SAMPLE_WITH_PC, task_id,
					     base + chain_bytes, &slot);
	unsigned int i;

	if (!record)
		return false;
	record->pc = pc;
	/* They are few. */
	for (i = 0; i < nr_deltas; i++)
		record->deltas[i] = deltas[i];
	if (chain_bytes)
		memcpy((void *)record + base, chain, chain_bytes);
	slot_commit(ring, &slot);
	return true;
}

bool kbarman_record_counts(struct kbarman_ring *ring, u32 task_id, const u64 *deltas,
			   unsigned int nr_deltas)
{
	unsigned long bytes = nr_deltas * sizeof(*deltas);
	struct bm_protocol_sample *record;
	struct record_slot slot;

	record = sample_begin(ring, BM_RECORD_SAMPLE, task_id, sizeof(*record) + bytes, &slot);
	if (!record)
		return false;
	memcpy(record + 1, deltas, bytes);
	slot_commit(ring, &slot);
	return true;
}

void kbarman_record_annotation(struct kbarman_ring *ring, u32 task_id,
			       const struct kbarman_mark *mark, const char *text)
{
	struct bm_protocol_annotation *annotation;
	unsigned long data = mark->text_bytes ? mark->text_bytes + 1 : 0;
	unsigned long length = ALIGN(sizeof(*annotation) + data, sizeof(bm_uintptr));
	struct kbarman_slot slot = record_begin(ring, length);

	annotation = slot.record;
	if (!annotation)
		return;
	/* Clear the last word, which has the NUL and the padding. */
	memset((u8 *)annotation + length - sizeof(bm_uintptr), 0, sizeof(bm_uintptr));
	kbarman_fill_header(ring, annotation, BM_RECORD_ANNOTATION, slot.timestamp);
	annotation->task_id = task_id;
	annotation->data_length = data;
	annotation->channel = mark->channel;
	annotation->group = mark->group;
	annotation->colour = mark->colour;
	annotation->type = mark->type;
	memcpy(annotation->data, text, mark->text_bytes);
	if (data)
		annotation->data[data - 1] = '\0';
	kbarman_ring_commit(ring, slot.begin);
}

void kbarman_record_counter(struct kbarman_ring *ring, u32 task_id, u32 series, u64 value)
{
	struct bm_protocol_custom_counter *counter;
	struct kbarman_slot slot = record_begin(ring, sizeof(*counter));

	counter = slot.record;
	if (!counter)
		return;
	kbarman_fill_header(ring, counter, BM_RECORD_CUSTOM_COUNTER, slot.timestamp);
	counter->task_id = task_id;
	counter->counter = series;
	counter->value = value;
	kbarman_ring_commit(ring, slot.begin);
}
