// SPDX-License-Identifier: MIT
/* A number that depends on all fields of a record. */
#include <kbarman/barman.h>

#include "format/barman/checksum.h"
#include "format/barman/places.h"

static uint64_t hash_bytes(const char *text, uint32_t length)
{
	uint64_t hash = length;

	for (uint32_t i = 0; i < length; i++)
		hash = (hash ^ (uint8_t)text[i]) * UINT64_C(0x100000001b3);
	return hash;
}

static uint64_t hash_chain(const uint64_t *chain, uint32_t nr, uint32_t nr_kernel)
{
	uint64_t hash = 0;

	for (uint32_t i = 0; i < nr; i++)
		hash += (chain[i] + nr_kernel) * (MIX_HEAD + 2 * (i + 1));
	return hash;
}

static uint64_t hash_sample(const struct kb_event *event)
{
	uint64_t body = event->task_id | (uint64_t)event->sample.nr_counters << 32;
	uint64_t hash = body * MIX_BODY + event->sample.pc * MIX_MORE;

	for (uint32_t i = 0; i < event->sample.nr_counters; i++)
		hash += event->sample.counters[i] * (MIX_BODY + 2 * (i + 1));
	for (uint32_t i = 0; i < event->sample.nr_custom; i++)
		hash += (event->sample.custom[i].id * MIX_TIME + event->sample.custom[i].value) *
			(MIX_MORE + 2 * (i + 1));
	return hash + hash_chain(event->sample.chain, event->sample.nr_chain,
				 event->sample.nr_chain_kernel);
}

static uint64_t hash_object(const struct kb_object *object)
{
	uint64_t body = object->kind | (uint64_t)object->flags << 8 | (uint64_t)object->call << 16 |
			(uint64_t)object->id << 32;

	return object->kind ? body * MIX_MORE + object->value * (MIX_BODY + 2) : 0;
}

/* 0 for a value and nothing else. */
static uint64_t hash_detail(const struct kb_event *event)
{
	uint64_t loss = event->custom_counter.begin * MIX_MORE + event->custom_counter.lost;
	uint64_t body = event->custom_counter.id | (uint64_t)event->custom_counter.cpu << 32 |
			(uint64_t)event->custom_counter.what << 48 |
			(uint64_t)event->custom_counter.context << 56;

	if (event->custom_counter.lost)
		return loss * (MIX_BODY + 4);
	if (event->custom_counter.arguments)
		body = body * MIX_MORE + event->custom_counter.begin * (MIX_BODY + 6) +
		       (uint64_t)event->custom_counter.result * (MIX_BODY + 8) +
		       hash_chain(event->custom_counter.arguments, KB_SYSCALL_ARGUMENTS, 0);
	return event->custom_counter.what == KB_WHAT_VALUE ? 0 :
	       body * (MIX_BODY + 2) + hash_object(&event->custom_counter.object);
}

static uint32_t record_type(const struct kb_event *event)
{
	switch (event->type) {
	case KB_EVENT_SAMPLE:
		return event->sample.has_pc ? BM_RECORD_SAMPLE_WITH_PC : BM_RECORD_SAMPLE;
	case KB_EVENT_TASK_SWITCH:
		return BM_RECORD_TASK_SWITCH;
	case KB_EVENT_CUSTOM_COUNTER:
		return BM_RECORD_CUSTOM_COUNTER;
	case KB_EVENT_ANNOTATION:
		return BM_RECORD_ANNOTATION;
	case KB_EVENT_HALT:
		return BM_RECORD_HALTING_EVENT;
	default:
		return event->unknown.record_type;
	}
}

uint64_t kb_event_checksum(const struct kb_event *event)
{
	uint64_t head = record_type(event) | (uint64_t)event->core << 32;
	uint64_t hash = head * MIX_HEAD + event->timestamp * MIX_TIME, body;

	switch (event->type) {
	case KB_EVENT_SAMPLE:
		return hash + hash_sample(event);
	case KB_EVENT_TASK_SWITCH:
		body = event->task_id | (uint64_t)event->task_switch.reason << 32;
		if (event->task_switch.prev_state != KB_STATE_UNKNOWN)
			body |= (uint64_t)(uint16_t)event->task_switch.prev_state << 40;
		return hash + body * MIX_BODY +
		       hash_chain(event->task_switch.chain, event->task_switch.nr_chain,
				  event->task_switch.nr_chain_kernel) + hash_object(&event->task_switch.object);
	case KB_EVENT_HALT:
		body = event->halt.entered | (uint64_t)(event->halt.idle_state + 1) << 8;
		return hash + body * MIX_BODY;
	case KB_EVENT_CUSTOM_COUNTER:
		body = event->task_id | (uint64_t)event->custom_counter.counter << 32;
		return hash + body * MIX_BODY + event->custom_counter.value * MIX_MORE +
		       hash_detail(event);
	case KB_EVENT_ANNOTATION:
		body = event->task_id | (uint64_t)event->annotation.channel << 32;
		hash += body * MIX_BODY;
		body = event->annotation.group | (uint64_t)event->annotation.colour << 32;
		hash += body * MIX_MORE + event->annotation.type * (MIX_BODY + 2);
		return hash + hash_bytes(event->annotation.text, event->annotation.text_length) *
			      (MIX_MORE + 2);
	default:
		/* The content is unknown; only its length counts. */
		return hash + event->unknown.length * MIX_BODY;
	}
}
