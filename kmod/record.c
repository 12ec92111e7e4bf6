// SPDX-License-Identifier: GPL-2.0-only
/* Pure like ring.c: what it needs of its surroundings is in ring_env.h. */
#include "record.h"

static const char lost_text[] = "records lost";

/*
 * Two words, or two bytes and padding, as they stand one behind the other in memory: to
 * be stored at once.
 */
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define TWO_WORDS(first, second)	((u64)(first) << 32 | (u32)(second))
#define TWO_BYTES(first, second)	((u32)(first) << 24 | (u32)(second) << 16)
#else
#define TWO_WORDS(first, second)	((u32)(first) | (u64)(second) << 32)
#define TWO_BYTES(first, second)	((u32)(first) | (u32)(second) << 8)
#endif

static __always_inline void fill_header(const struct kbarman_ring *ring, void *record, u32 type,
					u64 timestamp)
{
	struct {
		u64 type_and_core;
		u64 timestamp;
	} __packed __aligned(4) *header = record;

	static_assert(offsetof(struct bm_protocol_record_header, record_type) == 0);
	static_assert(offsetof(struct bm_protocol_record_header, core) == 4);
	static_assert(offsetof(struct bm_protocol_record_header, timestamp) == 8);

	header->type_and_core = TWO_WORDS(type, ring->cpu);
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
	fill_header(ring, counter, BM_RECORD_CUSTOM_COUNTER, slot.timestamp);
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
	fill_header(ring, bookmark, BM_RECORD_ANNOTATION, slot.timestamp);
	bookmark->data_length = sizeof(lost_text);
	bookmark->type = BM_ANNOTATION_BOOKMARK;
	memcpy(bookmark->data, lost_text, sizeof(lost_text));
	kbarman_ring_commit(ring);
}

static struct kbarman_slot begin(struct kbarman_ring *ring, unsigned long length)
{
	if (unlikely(local_read(&ring->unreported)))
		record_losses(ring);
	return kbarman_ring_reserve(ring, length);
}

/*
 * What there is most of is of one size: the header and eight bytes, which are given as
 * the number that they are in memory, to stay in a register all the way.
 */
struct small_record {
	struct bm_protocol_record_header header;
	u64 tail;
} __packed __aligned(4);

static __always_inline void fill_small(const struct kbarman_ring *ring, struct kbarman_slot slot,
				       u32 type, u64 tail)
{
	struct small_record *record = slot.record;

	fill_header(ring, record, type, slot.timestamp);
	record->tail = tail;
}

static noinline void record_small_slow(struct kbarman_ring *ring, u32 type, u64 tail)
{
	struct kbarman_slot slot = begin(ring, sizeof(struct small_record));

	if (!slot.record)
		return;
	fill_small(ring, slot, type, tail);
	kbarman_ring_commit(ring);
}

static __always_inline void record_small(struct kbarman_ring *ring, u32 type, u64 tail)
{
	struct kbarman_slot slot = kbarman_ring_reserve_short(ring, sizeof(struct small_record));

	if (unlikely(!slot.record)) {
		/* Nothing is left to be done behind it: a jump, with no registers saved. */
		record_small_slow(ring, type, tail);
		return;
	}
	fill_small(ring, slot, type, tail);
	kbarman_ring_commit_short(ring, slot.end);
}

void kbarman_record_switch(struct kbarman_ring *ring, u32 task_id,
			   enum bm_task_switch_reason reason, u8 prev_state)
{
	static_assert(offsetof(struct bm_protocol_task_switch, task_id) == 16);
	static_assert(offsetof(struct bm_protocol_task_switch, reason) == 20);
	static_assert(offsetof(struct bm_protocol_task_switch, prev_state) == 21);

	record_small(ring, BM_RECORD_TASK_SWITCH,
		     TWO_WORDS(task_id, TWO_BYTES(reason, prev_state)));
}

void kbarman_record_switch_chain(struct kbarman_ring *ring, u32 task_id,
				 enum bm_task_switch_reason reason, u8 prev_state,
				 const struct bm_kbarman_callchain *chain,
				 unsigned long chain_bytes)
{
	struct kbarman_slot slot = begin(ring, sizeof(struct small_record) + chain_bytes);

	static_assert(sizeof(struct small_record) == BM_TASK_SWITCH_CHAIN_OFFSET);

	if (!slot.record)
		return;
	fill_small(ring, slot, BM_RECORD_TASK_SWITCH,
		   TWO_WORDS(task_id, TWO_BYTES(reason, prev_state)));
	memcpy(slot.record + sizeof(struct small_record), chain, chain_bytes);
	kbarman_ring_commit(ring);
}

void kbarman_record_halt(struct kbarman_ring *ring, bool entered, u8 idle_state)
{
	static_assert(offsetof(struct bm_protocol_halting_event, entered_halt) == 16);
	static_assert(offsetof(struct bm_protocol_halting_event, idle_state) == 17);

	record_small(ring, BM_RECORD_HALTING_EVENT, TWO_WORDS(TWO_BYTES(entered, idle_state), 0));
}

void kbarman_record_sample(struct kbarman_ring *ring, u32 task_id, unsigned long pc,
			   const u64 *deltas, unsigned int nr_deltas,
			   const struct bm_kbarman_callchain *chain, unsigned long chain_bytes)
{
	struct {
		struct bm_protocol_sample sample;
		bm_uintptr pc;
		u64 deltas[];
	} __packed __aligned(4) *record;
	unsigned long base = sizeof(*record) + nr_deltas * sizeof(*deltas);
	struct kbarman_slot slot = begin(ring, base + chain_bytes);

	record = slot.record;
	if (!record)
		return;
	fill_header(ring, record, BM_RECORD_SAMPLE_WITH_PC, slot.timestamp);
	record->sample.task_id = task_id;
	record->sample.num_custom_counters = 0;
	record->pc = pc;
	memcpy(record->deltas, deltas, nr_deltas * sizeof(*deltas));
	if (chain_bytes)
		memcpy(slot.record + base, chain, chain_bytes);
	kbarman_ring_commit(ring);
}

void kbarman_record_annotation(struct kbarman_ring *ring, u32 task_id,
			       const struct kbarman_mark *mark, const char *text)
{
	struct bm_protocol_annotation *annotation;
	unsigned long data = mark->text_bytes ? mark->text_bytes + 1 : 0;
	unsigned long length = ALIGN(sizeof(*annotation) + data, sizeof(bm_uintptr));
	struct kbarman_slot slot = begin(ring, length);

	annotation = slot.record;
	if (!annotation)
		return;
	/* The NUL and the padding. */
	memset((u8 *)annotation + length - sizeof(bm_uintptr), 0, sizeof(bm_uintptr));
	fill_header(ring, annotation, BM_RECORD_ANNOTATION, slot.timestamp);
	annotation->task_id = task_id;
	annotation->data_length = data;
	annotation->channel = mark->channel;
	annotation->group = mark->group;
	annotation->colour = mark->colour;
	annotation->type = mark->type;
	memcpy(annotation->data, text, mark->text_bytes);
	if (data)
		annotation->data[data - 1] = '\0';
	kbarman_ring_commit(ring);
}

void kbarman_record_counter(struct kbarman_ring *ring, u32 task_id, u32 series, u64 value)
{
	struct bm_protocol_custom_counter *counter;
	struct kbarman_slot slot = begin(ring, sizeof(*counter));

	counter = slot.record;
	if (!counter)
		return;
	fill_header(ring, counter, BM_RECORD_CUSTOM_COUNTER, slot.timestamp);
	counter->task_id = task_id;
	counter->counter = series;
	counter->value = value;
	kbarman_ring_commit(ring);
}
