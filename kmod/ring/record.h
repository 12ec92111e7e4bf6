/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Writes records. Each function writes one record of the Barman format into the ring, complete and
 * with its padding zeroed, or counts the record as lost.
 *
 * Context of all functions: the ring's CPU, preemption off, any level up to NMI.
 */
#ifndef KBARMAN_RECORD_H
#define KBARMAN_RECORD_H

#include "ring/ring.h"

/*
 * The custom series of every capture, in the order of the header's table. The series that programs
 * create (KBARMAN_MARK_SERIES) follow them.
 */
enum kbarman_series {
	KBARMAN_SERIES_LOST = 0,	/* records lost since the last value of this series */
	KBARMAN_SERIES_STOPPED,		/* why the first counter stopped: enum kbarman_stop + 1; 0:
					 * it counts */
	/* Without a name, and unused, if the session has not asked for their sources. */
	KBARMAN_SERIES_WAKEUPS,		/* all of these have a struct bm_kbarman_detail */
	KBARMAN_SERIES_MIGRATIONS,
	KBARMAN_SERIES_INTERRUPTS,
	KBARMAN_SERIES_SOFTIRQS,
	KBARMAN_SERIES_FREQUENCY,
	KBARMAN_SERIES_IDLE_MISSES,
	KBARMAN_SERIES_SYSCALLS,
	KBARMAN_SERIES_FAULTS,
	KBARMAN_SERIES_BLOCK,
	KBARMAN_SERIES_COUNT,
};

/*
 * Two words, or two bytes and padding, as one number. Storing this number writes the two one behind
 * the other in memory.
 */
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define KBARMAN_TWO_WORDS(first, second)	((u64)(first) << 32 | (u32)(second))
#define KBARMAN_TWO_BYTES(first, second)	((u32)(first) << 24 | (u32)(second) << 16)
#define KBARMAN_LAST_BYTE(byte)			((u32)(byte))
#else
#define KBARMAN_TWO_WORDS(first, second)	((u32)(first) | (u64)(second) << 32)
#define KBARMAN_TWO_BYTES(first, second)	((u32)(first) | (u32)(second) << 8)
#define KBARMAN_LAST_BYTE(byte)			((u32)(byte) << 24)
#endif

/*
 * The reason and the state, which has 16 bits, as one number, as above. The lower byte of the state
 * is first in memory, with either byte order.
 */
static __always_inline u32 kbarman_reason_state(enum bm_task_switch_reason reason,
						unsigned int state)
{
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	return (u32)reason << 24 | (u32)(u8)state << 16 | (state & 0xff00);
#else
	return reason | (u32)state << 8;
#endif
}

/* The ring's stamp: type and core of a task switch, as nearly all records are. */
static __always_inline u64 kbarman_record_stamp(u32 cpu)
{
	return KBARMAN_TWO_WORDS(BM_RECORD_TASK_SWITCH, cpu);
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

	/* Those of a task switch, made those of @type: nothing is left of that if it is one. */
	header->type_and_core = ring->stamp ^ KBARMAN_TWO_WORDS(type ^ BM_RECORD_TASK_SWITCH, 0);
	header->timestamp = timestamp;
}

/*
 * Most records have one size: the header and eight bytes. The eight bytes are passed as the number
 * that they are in memory, so that they stay in a register.
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

/* Writes the record where the short way can't. Writes nothing if the ring is not ready. */
void kbarman_record_small_slow(struct kbarman_ring *ring, u32 type, u64 tail);

/*
 * The short way is inlined. Every other function is called as a tail call, so the probe need not
 * save a register.
 */
static __always_inline void kbarman_record_small(struct kbarman_ring *ring, u32 type, u64 tail)
{
	struct kbarman_short it;

	if (unlikely(!kbarman_ring_reserve_short(ring, sizeof(struct kbarman_small_record), &it))) {
		kbarman_record_small_slow(ring, type, tail);
		return;
	}
	kbarman_fill_small(ring, it.slot, type, tail);
	kbarman_ring_commit_short(ring, &it);
}

/* @ring is this CPU's ring; it may not be ready. */
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

/* A struct bm_kbarman_object as the two numbers that it is in memory. */
struct kbarman_object {
	u64 what;
	u64 value;
};

static __always_inline struct kbarman_object kbarman_object(enum bm_kbarman_object_kind kind, u8 flags,
							    u16 call, u32 id, u64 value)
{
	static_assert(offsetof(struct bm_kbarman_object, call) == 0);
	static_assert(offsetof(struct bm_kbarman_object, kind) == 2);
	static_assert(offsetof(struct bm_kbarman_object, flags) == 3);
	static_assert(offsetof(struct bm_kbarman_object, id) == 4);
	static_assert(offsetof(struct bm_kbarman_object, value) == 8);

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	return (struct kbarman_object) {
		KBARMAN_TWO_WORDS((u32)call << 16 | (u32)kind << 8 | flags, id), value };
#else
	return (struct kbarman_object) {
		KBARMAN_TWO_WORDS(call | (u32)kind << 16 | (u32)flags << 24, id), value };
#endif
}

/* A switch without a chain, with what the task waits for. */
struct kbarman_object_record {
	struct kbarman_small_record base;
	struct bm_kbarman_callchain chain;	/* empty */
	struct kbarman_object object;
} __packed __aligned(4);

static __always_inline void kbarman_fill_object(const struct kbarman_ring *ring,
						struct kbarman_slot slot, u64 tail,
						struct kbarman_object object)
{
	struct kbarman_object_record *record = slot.record;

	kbarman_fill_small(ring, slot, BM_RECORD_TASK_SWITCH, tail);
	record->chain = (struct bm_kbarman_callchain) { };
	record->object = object;
}

/* Writes the record where the short way can't. Writes nothing if the ring is not ready. */
void kbarman_record_object_slow(struct kbarman_ring *ring, u64 tail, struct kbarman_object object);

/* kbarman_record_switch() with what the previous task waits for. */
static __always_inline void kbarman_record_switch_object(struct kbarman_ring *ring, u32 task_id,
							 enum bm_task_switch_reason reason,
							 unsigned int prev_state,
							 struct kbarman_object object)
{
	u64 tail = KBARMAN_TWO_WORDS(task_id, kbarman_reason_state(reason, prev_state) |
					      KBARMAN_LAST_BYTE(BM_TASK_SWITCH_OBJECT));
	struct kbarman_short it;

	if (unlikely(!kbarman_ring_reserve_short(ring, sizeof(struct kbarman_object_record), &it))) {
		kbarman_record_object_slow(ring, tail, object);
		return;
	}
	kbarman_fill_object(ring, it.slot, tail, object);
	kbarman_ring_commit_short(ring, &it);
}

/* @ring is this CPU's ring, whose recording begins with @task_id running. */
static __always_inline void kbarman_record_first(struct kbarman_ring *ring, u32 task_id)
{
	static_assert(offsetof(struct bm_protocol_task_switch, flags) == 23);

	kbarman_record_small(ring, BM_RECORD_TASK_SWITCH,
			     KBARMAN_TWO_WORDS(task_id, KBARMAN_LAST_BYTE(BM_TASK_SWITCH_FIRST)));
}

/*
 * @ring is this CPU's ring; it may not be ready. @idle_state is the index of the cpuidle state + 1,
 * or 0 if the state is not known.
 */
static __always_inline void kbarman_record_halt(struct kbarman_ring *ring, bool entered,
						u8 idle_state)
{
	static_assert(offsetof(struct bm_protocol_halting_event, entered_halt) == 16);
	static_assert(offsetof(struct bm_protocol_halting_event, idle_state) == 17);

	kbarman_record_small(ring, BM_RECORD_HALTING_EVENT,
			     KBARMAN_TWO_WORDS(KBARMAN_TWO_BYTES(entered, idle_state), 0));
}

/* A struct bm_kbarman_detail as the two words that it is in memory. */
struct kbarman_detail {
	u32 id;
	u32 about;
};

/*
 * A value of one of the module's own series, and what it is about. The numbers are passed as they
 * are in memory, as those of small records: the task and the series, the value, the detail. The
 * detail is a struct: gcc then moves its words about less than those of one number.
 */
struct kbarman_detail_record {
	struct bm_protocol_record_header header;
	u64 task_and_series;
	u64 value;
	struct kbarman_detail detail;
} __packed __aligned(4);

/* @cpu has 16 bits. */
static __always_inline struct kbarman_detail kbarman_detail(enum bm_kbarman_what what,
							    enum bm_kbarman_context context,
							    u32 id, u32 cpu)
{
	static_assert(offsetof(struct bm_kbarman_detail, id) == 0);
	static_assert(offsetof(struct bm_kbarman_detail, cpu) == 4);
	static_assert(offsetof(struct bm_kbarman_detail, what) == 6);
	static_assert(offsetof(struct bm_kbarman_detail, context) == 7);

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	return (struct kbarman_detail) { id, cpu << 16 | (u32)what << 8 | context };
#else
	return (struct kbarman_detail) { id, (u32)context << 24 | (u32)what << 16 | cpu };
#endif
}

static __always_inline void kbarman_fill_detail(const struct kbarman_ring *ring,
						struct kbarman_slot slot, u64 task_and_series,
						u64 value, struct kbarman_detail detail)
{
	struct kbarman_detail_record *record = slot.record;

	static_assert(offsetof(struct kbarman_detail_record, detail) ==
		      sizeof(struct bm_protocol_custom_counter));
	static_assert(offsetof(struct bm_protocol_custom_counter, task_id) == 16);
	static_assert(offsetof(struct bm_protocol_custom_counter, counter) == 20);
	static_assert(offsetof(struct bm_protocol_custom_counter, value) == 24);

	kbarman_fill_header(ring, record, BM_RECORD_CUSTOM_COUNTER, slot.timestamp);
	record->task_and_series = task_and_series;
	record->value = value;
	record->detail = detail;
}

/* Writes the record where the short way can't. Writes nothing if the ring is not ready. */
void kbarman_record_detail_slow(struct kbarman_ring *ring, u64 task_and_series, u64 value,
				struct kbarman_detail detail);

/*
 * @ring is this CPU's ring; it may not be ready. @task_id is the task that runs. @detail:
 * kbarman_detail(). Inlined as kbarman_record_small() is.
 */
static __always_inline void kbarman_record_detail(struct kbarman_ring *ring, u32 task_id,
						  enum kbarman_series series, u64 value,
						  struct kbarman_detail detail)
{
	u64 task_and_series = KBARMAN_TWO_WORDS(task_id, series);
	struct kbarman_short it;

	if (unlikely(!kbarman_ring_reserve_short(ring, sizeof(struct kbarman_detail_record),
						 &it))) {
		kbarman_record_detail_slow(ring, task_and_series, value, detail);
		return;
	}
	kbarman_fill_detail(ring, it.slot, task_and_series, value, detail);
	kbarman_ring_commit_short(ring, &it);
}

/* A wakeup with the call in which the task is that runs. */
struct kbarman_wakeup_record {
	struct kbarman_detail_record base;
	struct kbarman_object object;
} __packed __aligned(4);

static __always_inline void kbarman_fill_wakeup(const struct kbarman_ring *ring,
						struct kbarman_slot slot, u64 task_and_series,
						struct kbarman_detail detail,
						struct kbarman_object object)
{
	struct kbarman_wakeup_record *record = slot.record;

	kbarman_fill_detail(ring, slot, task_and_series, 1, detail);
	record->object = object;
}

/* Writes the record where the short way can't. Writes nothing if the ring is not ready. */
void kbarman_record_wakeup_slow(struct kbarman_ring *ring, u64 task_and_series,
				struct kbarman_detail detail, struct kbarman_object object);

/* kbarman_record_detail() of a wakeup with the call in which task @task_id is. */
static __always_inline void kbarman_record_wakeup(struct kbarman_ring *ring, u32 task_id,
						  struct kbarman_detail detail,
						  struct kbarman_object object)
{
	u64 task_and_series = KBARMAN_TWO_WORDS(task_id, KBARMAN_SERIES_WAKEUPS);
	struct kbarman_short it;

	if (unlikely(!kbarman_ring_reserve_short(ring, sizeof(struct kbarman_wakeup_record), &it))) {
		kbarman_record_wakeup_slow(ring, task_and_series, detail, object);
		return;
	}
	kbarman_fill_wakeup(ring, it.slot, task_and_series, detail, object);
	kbarman_ring_commit_short(ring, &it);
}

/* Of the time when it began so many upper bits are not kept. */
#define KBARMAN_BEGIN_SHIFT	6

/*
 * What has taken time, when it ends: struct bm_kbarman_syscall, bm_kbarman_fault or bm_kbarman_block behind its
 * detail. They differ in how many numbers they have.
 */
struct kbarman_ended {
	u64 begin;	/* << KBARMAN_BEGIN_SHIFT; 0: it is not known */
	s64 result;
	u64 numbers[3];
};

#define KBARMAN_SYSCALL_NUMBERS	3
#define KBARMAN_FAULT_NUMBERS	2
#define KBARMAN_BLOCK_NUMBERS	2

struct kbarman_ended_record {
	struct kbarman_detail_record base;
	struct kbarman_ended ended;
} __packed __aligned(4);

static __always_inline unsigned long kbarman_ended_bytes(unsigned int nr_numbers)
{
	static_assert(sizeof(struct kbarman_ended) + sizeof(struct bm_kbarman_detail) ==
		      sizeof(struct bm_kbarman_syscall));
	static_assert(offsetof(struct kbarman_ended, numbers[KBARMAN_FAULT_NUMBERS]) +
		      sizeof(struct bm_kbarman_detail) == sizeof(struct bm_kbarman_fault));
	static_assert(offsetof(struct kbarman_ended, numbers[KBARMAN_BLOCK_NUMBERS]) +
		      sizeof(struct bm_kbarman_detail) == sizeof(struct bm_kbarman_block));

	return offsetof(struct kbarman_ended_record, ended.numbers) + nr_numbers * sizeof(u64);
}

static __always_inline void kbarman_fill_ended(const struct kbarman_ring *ring, struct kbarman_slot slot,
					       u64 task_and_series, struct kbarman_detail detail,
					       const struct kbarman_ended *ended, unsigned int nr_numbers)
{
	struct kbarman_ended_record *record = slot.record;
	unsigned int i;

	kbarman_fill_detail(ring, slot, task_and_series, 1, detail);
	record->ended.begin = 0;
	if (ended->begin) {
		s64 age = (slot.timestamp << KBARMAN_BEGIN_SHIFT) - ended->begin;

		/* Another CPU's clock may be ahead by a little. */
		if (age < 0)
			age = 0;
		record->ended.begin = slot.timestamp - (age >> KBARMAN_BEGIN_SHIFT);
	}
	record->ended.result = ended->result;
	for (i = 0; i < nr_numbers; i++)
		record->ended.numbers[i] = ended->numbers[i];
}

/* Writes the record where the short way can't. Writes nothing if the ring is not ready. */
void kbarman_record_ended_slow(struct kbarman_ring *ring, u64 task_and_series, struct kbarman_detail detail,
			       const struct kbarman_ended *ended, unsigned int nr_numbers);

/* @ring is this CPU's ring; it may not be ready. @task_id is the task that runs. @nr_numbers: a constant. */
static __always_inline void kbarman_record_ended(struct kbarman_ring *ring, u32 task_id,
						 enum kbarman_series series, struct kbarman_detail detail,
						 const struct kbarman_ended *ended, unsigned int nr_numbers)
{
	u64 task_and_series = KBARMAN_TWO_WORDS(task_id, series);
	struct kbarman_short it;

	if (unlikely(!kbarman_ring_reserve_short(ring, kbarman_ended_bytes(nr_numbers), &it))) {
		kbarman_record_ended_slow(ring, task_and_series, detail, ended, nr_numbers);
		return;
	}
	kbarman_fill_ended(ring, it.slot, task_and_series, detail, ended, nr_numbers);
	kbarman_ring_commit_short(ring, &it);
}

/*
 * A task switch with the call chain of the previous task, and what that task waits for (NULL: it has
 * no object). @chain_bytes is the chain's length.
 */
void kbarman_record_switch_chain(struct kbarman_ring *ring, u32 task_id,
				 enum bm_task_switch_reason reason, unsigned int prev_state,
				 const struct bm_kbarman_callchain *chain,
				 unsigned long chain_bytes, const struct kbarman_object *object);

/*
 * A sample with PC. @deltas has as many values as the CPU's entry in the PMU table. The
 * @chain_bytes bytes at @chain, a multiple of the word size, are written behind the sample. Returns
 * false if the sample is lost.
 */
bool kbarman_record_sample(struct kbarman_ring *ring, u32 task_id, unsigned long pc,
			   const u64 *deltas, unsigned int nr_deltas,
			   const struct bm_kbarman_callchain *chain, unsigned long chain_bytes);

/* Write a sample without PC. @deltas and result: as of kbarman_record_sample(). */
bool kbarman_record_counts(struct kbarman_ring *ring, u32 task_id, const u64 *deltas,
			   unsigned int nr_deltas);

/* @text has @mark->text_bytes bytes, without a NUL. 0 bytes end the channel's annotation. */
void kbarman_record_annotation(struct kbarman_ring *ring, u32 task_id,
			       const struct kbarman_mark *mark, const char *text);

void kbarman_record_counter(struct kbarman_ring *ring, u32 task_id, u32 series, u64 value);

#endif /* KBARMAN_RECORD_H */
