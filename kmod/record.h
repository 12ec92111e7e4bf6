/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Facts to record bytes. Each function writes one record of the Barman format into
 * the ring, whole and with its padding zeroed, or counts it as lost.
 *
 * Context of all: the ring's CPU, preemption off, any level up to NMI.
 */
#ifndef KBARMAN_RECORD_H
#define KBARMAN_RECORD_H

#include "ring.h"

/* The custom series of every capture, in the order of the header's table; what programs
 * define (KBARMAN_MARK_SERIES) comes behind them. */
enum kbarman_series {
	KBARMAN_SERIES_LOST = 0,	/* records lost since the series' last value */
	KBARMAN_SERIES_STOPPED,		/* the first counter stands still: enum kbarman_stop + 1 */
	KBARMAN_SERIES_COUNT,
};

/*
 * Two words, or two bytes and padding, as they stand one behind the other in memory: to
 * be stored at once.
 */
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define KBARMAN_TWO_WORDS(first, second)	((u64)(first) << 32 | (u32)(second))
#define KBARMAN_TWO_BYTES(first, second)	((u32)(first) << 24 | (u32)(second) << 16)
#else
#define KBARMAN_TWO_WORDS(first, second)	((u32)(first) | (u64)(second) << 32)
#define KBARMAN_TWO_BYTES(first, second)	((u32)(first) | (u32)(second) << 8)
#endif

/* So are these: the lower byte of the state first, whatever the byte order. */
static __always_inline u32 kbarman_reason_state(enum bm_task_switch_reason reason,
						unsigned int state)
{
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	return (u32)reason << 24 | (u32)(u8)state << 16 | (state & 0xff00);
#else
	return reason | (u32)(u16)state << 8;
#endif
}

static __always_inline void kbarman_fill_header(const struct kbarman_ring *ring, void *record,
						u32 type, u64 timestamp)
{
	struct header {
		u64 type_and_core;
		u64 timestamp;
	} __packed __aligned(4);
	struct header *header = record;

	static_assert(offsetof(struct bm_protocol_record_header, record_type) == 0);
	static_assert(offsetof(struct bm_protocol_record_header, core) == 4);
	static_assert(offsetof(struct bm_protocol_record_header, timestamp) == 8);

	header->type_and_core = KBARMAN_TWO_WORDS(type, ring->cpu);
	header->timestamp = timestamp;
}

/*
 * What there is most of is of one size: the header and eight bytes, which are given as
 * the number that they are in memory, to stay in a register all the way.
 */
struct kbarman_small_record {
	struct bm_protocol_record_header header;
	u64 tail;
} __packed __aligned(4);

static __always_inline void kbarman_fill_small(const struct kbarman_ring *ring,
					       struct kbarman_slot slot, u32 type, u64 tail)
{
	struct kbarman_small_record *record = slot.record;

	kbarman_fill_header(ring, record, type, slot.timestamp);
	record->tail = tail;
}

/* Whatever it takes; nothing, if the ring is not ready. */
void kbarman_record_small_slow(struct kbarman_ring *ring, u32 type, u64 tail);

static __always_inline void kbarman_record_short(struct kbarman_ring *ring, u32 type, u64 tail)
{
	struct kbarman_slot slot;

	if (unlikely(!kbarman_ring_reserve_short(ring, sizeof(struct kbarman_small_record),
						 &slot))) {
		kbarman_record_small_slow(ring, type, tail);
		return;
	}
	kbarman_fill_small(ring, slot, type, tail);
	kbarman_ring_commit_short(ring, slot.end);
}

/* kbarman_record_short() as a function. */
void kbarman_record_small_call(struct kbarman_ring *ring, u32 type, u64 tail);

/*
 * In line where it is short. Whatever else there is to call is called last, by a jump: so
 * no register needs to be saved.
 */
static __always_inline void kbarman_record_small(struct kbarman_ring *ring, u32 type, u64 tail)
{
	if (ring_clock_is_called())
		kbarman_record_small_call(ring, type, tail);
	else
		kbarman_record_short(ring, type, tail);
}

/* @ring: this CPU's, ready or not. */
static __always_inline void kbarman_record_switch(struct kbarman_ring *ring, u32 task_id,
						  enum bm_task_switch_reason reason,
						  unsigned int prev_state)
{
	static_assert(offsetof(struct bm_protocol_task_switch, task_id) == 16);
	static_assert(offsetof(struct bm_protocol_task_switch, reason) == 20);
	static_assert(offsetof(struct bm_protocol_task_switch, prev_state) == 21);
	static_assert(offsetof(struct bm_protocol_task_switch, prev_state_high) == 22);

	kbarman_record_small(ring, BM_RECORD_TASK_SWITCH,
			     KBARMAN_TWO_WORDS(task_id, kbarman_reason_state(reason, prev_state)));
}

/* @ring: this CPU's, ready or not. @idle_state: the cpuidle state's index + 1, 0: not known. */
static __always_inline void kbarman_record_halt(struct kbarman_ring *ring, bool entered,
						u8 idle_state)
{
	static_assert(offsetof(struct bm_protocol_halting_event, entered_halt) == 16);
	static_assert(offsetof(struct bm_protocol_halting_event, idle_state) == 17);

	kbarman_record_small(ring, BM_RECORD_HALTING_EVENT,
			     KBARMAN_TWO_WORDS(KBARMAN_TWO_BYTES(entered, idle_state), 0));
}

/* With the call chain of the task that is switched from, of @chain_bytes. */
void kbarman_record_switch_chain(struct kbarman_ring *ring, u32 task_id,
				 enum bm_task_switch_reason reason, unsigned int prev_state,
				 const struct bm_kbarman_callchain *chain,
				 unsigned long chain_bytes);

/*
 * A sample with PC; @deltas has as many values as the CPU's entry in the PMU table. @chain:
 * @chain_bytes, a multiple of the word, that go behind it.
 */
void kbarman_record_sample(struct kbarman_ring *ring, u32 task_id, unsigned long pc,
			   const u64 *deltas, unsigned int nr_deltas,
			   const struct bm_kbarman_callchain *chain, unsigned long chain_bytes);

/* A sample without PC; @deltas as above. */
void kbarman_record_counts(struct kbarman_ring *ring, u32 task_id, const u64 *deltas,
			   unsigned int nr_deltas);

/* @text: @mark->text_bytes of it, without a NUL; none: the end of an annotation. */
void kbarman_record_annotation(struct kbarman_ring *ring, u32 task_id,
			       const struct kbarman_mark *mark, const char *text);

void kbarman_record_counter(struct kbarman_ring *ring, u32 task_id, u32 series, u64 value);

#endif /* KBARMAN_RECORD_H */
