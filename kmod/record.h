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
	KBARMAN_SERIES_COUNT,
};

void kbarman_record_switch(struct kbarman_ring *ring, u32 task_id,
			   enum bm_task_switch_reason reason, u8 prev_state);

/* @idle_state: the cpuidle state's index + 1, 0 where it is not known. */
void kbarman_record_halt(struct kbarman_ring *ring, bool entered, u8 idle_state);

/* With the call chain of the task that is switched from, of @chain_bytes. */
void kbarman_record_switch_chain(struct kbarman_ring *ring, u32 task_id,
				 enum bm_task_switch_reason reason, u8 prev_state,
				 const struct bm_kbarman_callchain *chain,
				 unsigned long chain_bytes);

/*
 * A sample with PC; @deltas has as many values as the CPU's entry in the PMU table. @chain:
 * @chain_bytes, a multiple of the word, that go behind it.
 */
void kbarman_record_sample(struct kbarman_ring *ring, u32 task_id, unsigned long pc,
			   const u64 *deltas, unsigned int nr_deltas,
			   const struct bm_kbarman_callchain *chain, unsigned long chain_bytes);

/* @text: @mark->text_bytes of it, without a NUL; none: the end of an annotation. */
void kbarman_record_annotation(struct kbarman_ring *ring, u32 task_id,
			       const struct kbarman_mark *mark, const char *text);

void kbarman_record_counter(struct kbarman_ring *ring, u32 task_id, u32 series, u64 value);

#endif /* KBARMAN_RECORD_H */
