/* SPDX-License-Identifier: MIT */
/*
 * Decodes a block to an event. This is a template: reader.c includes it for each word
 * size and byte order, both of which are constants then.
 */
#ifndef KB_LIB_FORMAT_BARMAN_DECODE_H
#define KB_LIB_FORMAT_BARMAN_DECODE_H

#include <errno.h>
#include <inttypes.h>

#include "format/barman/ended.h"
#include "format/barman/inside.h"

/*
 * Decode the call chain after a base record into b->chain. Returns the number of addresses. A
 * chain is optional: an invalid one is a finding, and the record is valid without it.
 */
static kb_always_inline uint32_t decode_chain(struct kb_barman *b, const struct kb_event *event,
					      const uint8_t *at, uint64_t left,
					      unsigned int word, bool swap, uint32_t *kernel)
{
	uint32_t nr, nr_kernel;

	*kernel = 0;
	if (left < sizeof(struct bm_kbarman_callchain))
		return 0;
	nr = kb_load32(at, swap);
	/* A stack after the chain is for who records: see uapi/barman_v2.h. */
	nr_kernel = kb_load32(at + 4, swap);
	if (kb_unlikely(nr_kernel & BM_KBARMAN_CHAIN_STACK))
		b->stacks++;
	nr_kernel &= ~BM_KBARMAN_CHAIN_STACK;
	if (nr > (left - 8) / word || nr > BARMAN_CHAIN_MAX || nr_kernel > nr) {
		barman_finding(b, event->offset, "a call chain of %" PRIu32 " addresses, %" PRIu32
			       " of the kernel, in %" PRIu64 " bytes", nr, nr_kernel, left - 8);
		return 0;
	}
	for (uint32_t i = 0; i < nr; i++)
		b->chain[i] = kb_load_word(at + 8 + (uint64_t)i * word, word, swap);
	*kernel = nr_kernel;
	return nr;
}

static kb_always_inline void decode_object(struct kb_object *object, const uint8_t *at, bool swap)
{
	object->call = kb_load16(at, swap);
	object->kind = at[2];
	object->flags = at[3];
	object->id = kb_load32(at + 4, swap);
	object->value = kb_load64(at + 8, swap);
}

/*
 * What stands behind the fields of a task switch: a call chain, and what the task waits for. Both are
 * optional, so what is too short for one has none.
 */
static kb_always_inline void decode_behind(struct kb_barman *b, struct kb_event *event,
					   const uint8_t *record, uint64_t length,
					   unsigned int word, bool swap)
{
	const uint8_t *at = record + BM_TASK_SWITCH_CHAIN_OFFSET;
	uint64_t left = length - BM_TASK_SWITCH_CHAIN_OFFSET;

	if (record[23] & BM_TASK_SWITCH_OBJECT && left >= sizeof(struct bm_kbarman_object)) {
		left -= sizeof(struct bm_kbarman_object);
		decode_object(&event->task_switch.object, at + left, swap);
	}
	event->task_switch.nr_chain = decode_chain(b, event, at, left, word, swap,
						   &event->task_switch.nr_chain_kernel);
}

static kb_always_inline bool decode_switch(struct kb_barman *b, struct kb_event *event,
					   const uint8_t *record, uint64_t length,
					   unsigned int word, bool swap)
{
	bool extended = b->header.extended;

	if (length < 21)
		return false;
	event->type = KB_EVENT_TASK_SWITCH;
	event->task_id = kb_load32(record + 16, swap);
	event->task_switch.reason = record[20];
	event->task_switch.prev_state = extended && length > 21 ? record[21] : KB_STATE_UNKNOWN;
	if (b->header.wide_states && extended && length > 22)
		event->task_switch.prev_state |= record[22] << 8;
	event->task_switch.chain = b->chain;
	event->task_switch.nr_chain = 0;
	event->task_switch.nr_chain_kernel = 0;
	event->task_switch.object.kind = KB_OBJECT_NONE;
	if (kb_unlikely(extended && length > BM_TASK_SWITCH_CHAIN_OFFSET))
		decode_behind(b, event, record, length, word, swap);
	return true;
}

static kb_always_inline bool decode_sample(struct kb_barman *b, struct kb_event *event,
					   const uint8_t *at, uint64_t left, bool has_pc,
					   unsigned int word, bool swap)
{
	uint32_t nr_counters = b->header.pmus[event->core].num_counters;
	uint64_t fixed = (b->has_tasks ? 4 : 0) + (b->has_custom ? 4 : 0) + (has_pc ? word : 0);
	uint32_t nr_custom = 0;
	uint64_t need;

	event->task_id = 0;
	if (left < fixed)
		return false;
	if (b->has_tasks) {
		event->task_id = kb_load32(at, swap);
		at += 4;
	}
	if (b->has_custom) {
		nr_custom = kb_load32(at, swap);
		at += 4;
	}
	need = fixed + 8 * (uint64_t)nr_counters + 12 * (uint64_t)nr_custom;
	if (left < need || nr_custom > b->header.nr_series)
		return false;

	event->type = KB_EVENT_SAMPLE;
	event->sample.has_pc = has_pc;
	event->sample.pc = 0;
	if (has_pc) {
		event->sample.pc = kb_load_word(at, word, swap);
		at += word;
	}
	for (uint32_t i = 0; i < nr_counters; i++, at += 8)
		b->counters[i] = kb_load64(at, swap);
	event->sample.nr_counters = nr_counters;
	event->sample.counters = b->counters;
	for (uint32_t i = 0; i < nr_custom; i++, at += 12) {
		b->custom[i].id = kb_load32(at, swap);
		b->custom[i].value = kb_load64(at + 4, swap);
		if (b->custom[i].id >= b->header.nr_series)
			return false;
	}
	event->sample.nr_custom = nr_custom;
	event->sample.custom = b->custom;
	event->sample.chain = b->chain;
	event->sample.nr_chain = decode_chain(b, event, at,
					      has_pc && b->header.extended ? left - need : 0, word,
					      swap, &event->sample.nr_chain_kernel);
	if (kb_unlikely(b->cumulative))
		barman_counters_delta(b, event->core, b->counters, nr_counters);
	return true;
}

static kb_always_inline bool decode_annotation(const struct kb_barman *b, struct kb_event *event,
					       const uint8_t *at, uint64_t left,
					       unsigned int word, bool swap)
{
	uint64_t fixed = (b->has_tasks ? 4 : 0) + word + 13;
	uint64_t length;

	if (left < fixed)
		return false;
	event->task_id = 0;
	if (b->has_tasks) {
		event->task_id = kb_load32(at, swap);
		at += 4;
	}
	length = kb_load_word(at, word, swap);
	if (length > left - fixed)
		return false;
	at += word;
	event->type = KB_EVENT_ANNOTATION;
	event->annotation.data_length = length;
	event->annotation.channel = kb_load32(at, swap);
	event->annotation.group = kb_load32(at + 4, swap);
	event->annotation.colour = kb_load32(at + 8, swap);
	event->annotation.type = at[12];
	event->annotation.text = (const char *)at + 13;
	/* Fits: a block has at most BARMAN_BLOCK_MAX bytes. */
	event->annotation.text_length = (uint32_t)length;
	if (length && !at[13 + length - 1])
		event->annotation.text_length--;
	return true;
}

static kb_always_inline void decode_arguments(uint64_t arguments[KB_SYSCALL_ARGUMENTS], uint8_t what,
					      const uint8_t *at, bool swap)
{
	arguments[0] = kb_load64(at, swap);
	if (what == BM_KBARMAN_BLOCK) {
		arguments[KB_BLOCK_DEVICE] = kb_load32(at + 8, swap);
		arguments[KB_BLOCK_BYTES] = kb_load32(at + 12, swap);
		return;
	}
	arguments[1] = kb_load64(at + 8, swap);
	arguments[2] = what == BM_KBARMAN_SYSCALL ? kb_load64(at + 16, swap) : 0;
}

/* What a value is about, which is after the record: @left bytes. Optional, like a chain. */
static kb_always_inline void decode_detail(struct kb_barman *b, struct kb_event *event, const uint8_t *at,
					   uint64_t left, bool swap)
{
	uint32_t reason;

	if (!at[6])
		return;		/* zeros that fill the block */
	if (at[6] == BM_KBARMAN_LOST) {
		reason = kb_load32(at, swap);
		if (left < sizeof(struct bm_kbarman_loss) || reason >= UINT8_MAX)
			return;
		event->custom_counter.lost = (uint8_t)(reason + 1);
		event->custom_counter.begin = kb_load64(at + 8, swap);
		return;
	}
	if (left < barman_ended_bytes(at[6]))
		return;
	event->custom_counter.id = kb_load32(at, swap);
	event->custom_counter.cpu = kb_load16(at + 4, swap);
	event->custom_counter.what = at[6];
	event->custom_counter.context = at[7];
	if (barman_ended_bytes(at[6])) {
		event->custom_counter.begin = kb_load64(at + 8, swap);
		event->custom_counter.result = (int64_t)kb_load64(at + 16, swap);
		decode_arguments(b->arguments, at[6], at + 24, swap);
		event->custom_counter.arguments = b->arguments;
	}
	if (at[6] <= BM_KBARMAN_WAKING_NEW &&
	    left >= sizeof(struct bm_kbarman_detail) + sizeof(struct bm_kbarman_object))
		decode_object(&event->custom_counter.object, at + sizeof(struct bm_kbarman_detail), swap);
}

static kb_always_inline bool decode_custom(struct kb_barman *b, struct kb_event *event,
					   const uint8_t *at, uint64_t left, bool swap)
{
	uint32_t fixed = b->has_tasks ? 16 : 12;

	if (left < fixed)
		return false;
	event->task_id = 0;
	if (b->has_tasks) {
		event->task_id = kb_load32(at, swap);
		at += 4;
	}
	event->type = KB_EVENT_CUSTOM_COUNTER;
	event->custom_counter.counter = kb_load32(at, swap);
	event->custom_counter.value = kb_load64(at + 4, swap);
	event->custom_counter.lost = 0;
	event->custom_counter.begin = 0;
	event->custom_counter.id = 0;
	event->custom_counter.cpu = 0;
	event->custom_counter.what = KB_WHAT_VALUE;
	event->custom_counter.context = 0;
	event->custom_counter.object.kind = KB_OBJECT_NONE;
	event->custom_counter.arguments = NULL;
	if (b->header.extended && left >= fixed + sizeof(struct bm_kbarman_detail))
		decode_detail(b, event, at + 12, left - fixed, swap);
	return event->custom_counter.counter < b->header.nr_series;
}

/* Version 3 allows records without a core, for types that do not need one. */
static kb_always_inline bool core_is_good(const struct kb_barman *b, uint32_t core, uint32_t type)
{
	if (kb_likely(core < b->header.max_cores))
		return true;
	return core == KB_CORE_NONE && b->header.protocol_version == 3 &&
	       (type == BM_RECORD_ANNOTATION || type == BM_RECORD_CUSTOM_COUNTER);
}

/* Decode one record of @length bytes. False: it is damaged, and @event is not valid. */
static kb_always_inline bool decode_record(struct kb_barman *b, struct kb_event *event,
					   const uint8_t *record, uint64_t length,
					   unsigned int word, bool swap)
{
	const uint8_t *at = record + sizeof(struct bm_protocol_record_header);
	uint64_t left = length - sizeof(struct bm_protocol_record_header);
	uint32_t type;

	if (kb_unlikely(length < sizeof(struct bm_protocol_record_header)))
		return false;
	type = kb_load32(record, swap);
	event->core = kb_load32(record + 4, swap);
	event->timestamp = kb_load64(record + 8, swap);
	if (kb_unlikely(type < BM_RECORD_SAMPLE || type > BM_RECORD_HALTING_EVENT)) {
		event->type = KB_EVENT_UNKNOWN;
		event->task_id = 0;
		event->unknown.record_type = type;
		event->unknown.length = length;
		event->unknown.record = record;
		return true;
	}
	if (kb_unlikely(!core_is_good(b, event->core, type)))
		return false;

	switch (type) {
	case BM_RECORD_TASK_SWITCH:
		return decode_switch(b, event, record, length, word, swap);
	case BM_RECORD_HALTING_EVENT:
		if (left < 1)
			return false;
		event->type = KB_EVENT_HALT;
		event->task_id = 0;
		event->halt.entered = at[0];
		event->halt.idle_state = b->header.extended && left > 1 ? at[1] - 1
									: KB_STATE_UNKNOWN;
		return true;
	case BM_RECORD_SAMPLE:
		return decode_sample(b, event, at, left, false, word, swap);
	case BM_RECORD_SAMPLE_WITH_PC:
		return decode_sample(b, event, at, left, true, word, swap);
	case BM_RECORD_CUSTOM_COUNTER:
		return decode_custom(b, event, at, left, swap);
	default:
		return decode_annotation(b, event, at, left, word, swap);
	}
}

/* Decode the next event in the window. 0: the next block is not complete or has no record. */
static kb_always_inline int decode_next(struct kb_barman *b, struct kb_event *event,
					unsigned int word, bool swap)
{
	for (;;) {
		const uint8_t *at = b->at;
		size_t left = b->end - at;
		uint64_t length;

		if (kb_unlikely(left < word))
			return 0;
		length = kb_load_word(at, word, swap);
		/* Also true for padding: its top bit makes the length huge. */
		if (kb_unlikely(length > left - word))
			return 0;
		at += word;
		b->at = at + length;
		event->offset = b->window_offset + (at - b->window);
		if (kb_likely(decode_record(b, event, at, length, word, swap)))
			return 1;
		barman_bad_record(b, at, length, event->offset, swap);
	}
}

#endif
