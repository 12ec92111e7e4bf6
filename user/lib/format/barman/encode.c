// SPDX-License-Identifier: MIT
/*
 * Encodes an event to a block, for all four layouts: a template as in decode.h. The
 * bytes between a record and the next word are zero.
 */
#include <errno.h>

#include "format/barman/ended.h"
#include "format/barman/writer.h"

/* Position of an encoder in its record. Word size and byte order are constants. */
struct out {
	uint8_t *at;
	unsigned int word;
	bool swap;
};

static kb_always_inline void put8(struct out *o, uint8_t v)
{
	*o->at++ = v;
}

static kb_always_inline void put16(struct out *o, uint16_t v)
{
	kb_store16(o->at, v, o->swap);
	o->at += 2;
}

static kb_always_inline void put32(struct out *o, uint32_t v)
{
	kb_store32(o->at, v, o->swap);
	o->at += 4;
}

static kb_always_inline void put64(struct out *o, uint64_t v)
{
	kb_store64(o->at, v, o->swap);
	o->at += 8;
}

static kb_always_inline void put_word(struct out *o, uint64_t v)
{
	kb_store_word(o->at, v, o->word, o->swap);
	o->at += o->word;
}

static kb_always_inline bool fits(uint64_t value, unsigned int word)
{
	return word == 8 || value <= UINT32_MAX;
}

/* Reserve a record of @length bytes and write the fields that all records begin with. */
static kb_always_inline int begin(struct kb_barman_writer *writer, const struct kb_event *event,
				  struct out *o, uint32_t type, uint64_t length)
{
	uint64_t whole = (length + o->word - 1) & ~(uint64_t)(o->word - 1);
	int error;

	o->at = barman_reserve(writer, whole, &error);
	if (kb_unlikely(!o->at))
		return error ?: -EIO;
	/* Both lengths are at least 16. All padding is in the last word. */
	kb_store_word(o->at + whole - o->word, 0, o->word, false);
	put32(o, type);
	put32(o, event->core);
	put64(o, event->timestamp);
	return 0;
}

static kb_always_inline void put_chain(struct out *o, const uint64_t *chain, uint32_t nr,
				       uint32_t nr_kernel)
{
	uint32_t i;

	put32(o, nr);
	put32(o, nr_kernel);
	for (i = 0; i < nr; i++)
		put_word(o, chain[i]);
}

static kb_always_inline int encode_sample(struct kb_barman_writer *writer,
					  const struct kb_event *event, struct out *o)
{
	bool has_tasks = writer->shape.max_task_infos, has_custom = writer->shape.num_series;
	uint32_t nr_counters = event->sample.nr_counters, nr_custom = event->sample.nr_custom;
	bool has_pc = event->sample.has_pc;
	uint32_t nr_chain = has_pc && writer->extended ? event->sample.nr_chain : 0;
	uint64_t length;
	int ret;

	if (nr_counters != writer->num_counters[event->core] ||
	    nr_custom > writer->shape.num_series || nr_chain > BARMAN_CHAIN_MAX ||
	    (nr_chain && event->sample.nr_chain_kernel > nr_chain))
		return -EINVAL;
	for (uint32_t i = 0; i < nr_custom; i++) {
		if (event->sample.custom[i].id >= writer->shape.num_series)
			return -EINVAL;
	}
	if (has_pc && !fits(event->sample.pc, o->word))
		return -ERANGE;
	length = 16 + (has_tasks ? 4 : 0) + (has_custom ? 4 : 0) + (has_pc ? o->word : 0) +
		 8 * (uint64_t)nr_counters + 12 * (uint64_t)nr_custom;
	if (nr_chain)
		length += 8 + (uint64_t)nr_chain * o->word;
	ret = begin(writer, event, o, has_pc ? BM_RECORD_SAMPLE_WITH_PC : BM_RECORD_SAMPLE, length);
	if (ret)
		return ret;
	if (has_tasks)
		put32(o, event->task_id);
	if (has_custom)
		put32(o, nr_custom);
	if (has_pc)
		put_word(o, event->sample.pc);
	for (uint32_t i = 0; i < nr_counters; i++)
		put64(o, event->sample.counters[i]);
	for (uint32_t i = 0; i < nr_custom; i++) {
		put32(o, event->sample.custom[i].id);
		put64(o, event->sample.custom[i].value);
	}
	if (nr_chain)
		put_chain(o, event->sample.chain, nr_chain, event->sample.nr_chain_kernel);
	return 0;
}

static kb_always_inline int encode_annotation(struct kb_barman_writer *writer,
					      const struct kb_event *event, struct out *o)
{
	bool has_tasks = writer->shape.max_task_infos;
	uint32_t text = event->annotation.text_length;
	/*
	 * The length includes a NUL. An annotation that was decoded without one is written
	 * without.
	 */
	bool nul = text ? event->annotation.data_length != text : event->annotation.data_length;
	int ret = begin(writer, event, o, BM_RECORD_ANNOTATION,
			16 + (has_tasks ? 4 : 0) + o->word + 13 + (uint64_t)text + nul);

	if (ret)
		return ret;
	if (has_tasks)
		put32(o, event->task_id);
	put_word(o, (uint64_t)text + nul);
	put32(o, event->annotation.channel);
	put32(o, event->annotation.group);
	put32(o, event->annotation.colour);
	put8(o, event->annotation.type);
	if (text)
		memcpy(o->at, event->annotation.text, text);
	if (nul)
		o->at[text] = 0;
	return 0;
}

static kb_always_inline void put_object(struct out *o, const struct kb_object *object)
{
	put16(o, object->call);
	put8(o, object->kind);
	put8(o, object->flags);
	put32(o, object->id);
	put64(o, object->value);
}

static kb_always_inline int encode_switch(struct kb_barman_writer *writer,
					  const struct kb_event *event, struct out *o)
{
	bool extra = writer->extended && event->task_switch.prev_state != KB_STATE_UNKNOWN;
	int state = extra ? event->task_switch.prev_state : 0;
	uint32_t nr_chain = writer->extended ? event->task_switch.nr_chain : 0;
	bool object = writer->extended && event->task_switch.object.kind;
	uint64_t length = 21;
	int ret;

	if (!writer->shape.max_task_infos || nr_chain > BARMAN_CHAIN_MAX ||
	    (nr_chain && event->task_switch.nr_chain_kernel > nr_chain))
		return -EINVAL;
	if (nr_chain || object)
		length = BM_TASK_SWITCH_CHAIN_OFFSET + 8 + (uint64_t)nr_chain * o->word;
	if (object)
		length += sizeof(struct bm_kbarman_object);
	ret = begin(writer, event, o, BM_RECORD_TASK_SWITCH, length);
	if (ret)
		return ret;
	put32(o, event->task_id);
	put8(o, event->task_switch.reason);
	put8(o, state);
	put8(o, writer->wide_states ? state >> 8 : 0);
	if (!nr_chain && !object)
		return 0;
	put8(o, object ? BM_TASK_SWITCH_OBJECT : 0);
	put_chain(o, event->task_switch.chain, nr_chain, nr_chain ? event->task_switch.nr_chain_kernel : 0);
	if (object)
		put_object(o, &event->task_switch.object);
	return 0;
}

static kb_always_inline int encode_halt(struct kb_barman_writer *writer,
					const struct kb_event *event, struct out *o)
{
	bool extra = writer->extended && event->halt.idle_state != KB_STATE_UNKNOWN;
	int ret = begin(writer, event, o, BM_RECORD_HALTING_EVENT, 17);

	if (ret)
		return ret;
	put8(o, event->halt.entered);
	put8(o, extra ? event->halt.idle_state + 1 : 0);
	return 0;
}

/* What struct bm_kbarman_syscall and its like have behind the detail. */
static void put_ended(struct out *o, const struct kb_event *event)
{
	const uint64_t *arguments = event->custom_counter.arguments;

	put64(o, event->custom_counter.begin);
	put64(o, (uint64_t)event->custom_counter.result);
	put64(o, arguments[0]);
	if (event->custom_counter.what == KB_WHAT_BLOCK) {
		put32(o, (uint32_t)arguments[KB_BLOCK_DEVICE]);
		put32(o, (uint32_t)arguments[KB_BLOCK_BYTES]);
		return;
	}
	put64(o, arguments[1]);
	if (event->custom_counter.what == KB_WHAT_SYSCALL)
		put64(o, arguments[2]);
}

static kb_always_inline int encode_custom(struct kb_barman_writer *writer,
					  const struct kb_event *event, struct out *o)
{
	bool has_tasks = writer->shape.max_task_infos;
	bool detail = writer->extended && event->custom_counter.what != KB_WHAT_VALUE;
	bool loss = writer->extended && event->custom_counter.lost;
	uint64_t ended = detail ? barman_ended_bytes(event->custom_counter.what) : 0;
	bool object = detail && event->custom_counter.what <= KB_WHAT_WAKING_NEW &&
		      event->custom_counter.object.kind;
	int ret;

	if (event->custom_counter.counter >= writer->shape.num_series ||
	    (ended && !event->custom_counter.arguments))
		return -EINVAL;
	ret = begin(writer, event, o, BM_RECORD_CUSTOM_COUNTER,
		    (has_tasks ? 32 : 28) + (loss ? sizeof(struct bm_kbarman_loss) :
					     ended  ? ended :
					     detail ? sizeof(struct bm_kbarman_detail) : 0) +
		    (object ? sizeof(struct bm_kbarman_object) : 0));
	if (ret)
		return ret;
	if (has_tasks)
		put32(o, event->task_id);
	put32(o, event->custom_counter.counter);
	put64(o, event->custom_counter.value);
	if (loss) {
		put32(o, event->custom_counter.lost - 1U);
		put16(o, (uint16_t)event->core);
		put8(o, BM_KBARMAN_LOST);
		put8(o, 0);
		put64(o, event->custom_counter.begin);
	}
	if (loss || !detail)
		return 0;
	put32(o, event->custom_counter.id);
	put16(o, event->custom_counter.cpu);
	put8(o, event->custom_counter.what);
	put8(o, event->custom_counter.context);
	if (object)
		put_object(o, &event->custom_counter.object);
	if (ended)
		put_ended(o, event);
	return 0;
}

/* Written as it was in a capture of the same layout. */
static int encode_unknown(struct kb_barman_writer *writer, const struct kb_event *event)
{
	uint64_t length = event->unknown.length, word = writer->shape.word;
	uint64_t whole = (length + word - 1) & ~(word - 1);
	uint8_t *at;
	int error;

	if (length < 16 || !event->unknown.record)
		return -EINVAL;
	at = barman_reserve(writer, whole, &error);
	if (!at)
		return error;
	kb_store_word(at + whole - word, 0, word, false);
	memcpy(at, event->unknown.record, length);
	return 0;
}

static kb_always_inline int encode_event(struct kb_barman_writer *writer,
					 const struct kb_event *event, unsigned int word, bool swap)
{
	struct out o = { .word = word, .swap = swap };

	switch (event->type) {
	case KB_EVENT_SAMPLE:
		return encode_sample(writer, event, &o);
	case KB_EVENT_TASK_SWITCH:
		return encode_switch(writer, event, &o);
	case KB_EVENT_HALT:
		return encode_halt(writer, event, &o);
	case KB_EVENT_CUSTOM_COUNTER:
		return encode_custom(writer, event, &o);
	case KB_EVENT_ANNOTATION:
		return encode_annotation(writer, event, &o);
	default:
		return encode_unknown(writer, event);
	}
}

/* All ones means "the last known timestamp" in version 3. */
static void note_timestamp(struct kb_barman_writer *writer, uint64_t timestamp)
{
	if (timestamp > writer->last_timestamp && timestamp != UINT64_MAX)
		writer->last_timestamp = timestamp;
}

int kb_barman_writer_event(struct kb_barman_writer *writer, const struct kb_event *event)
{
	if (kb_unlikely(writer->error.code))
		return writer->error.code;
	if (kb_unlikely(event->core >= writer->shape.max_cores) &&
	    event->type != KB_EVENT_UNKNOWN &&
	    (event->core != KB_CORE_NONE ||
	     (event->type != KB_EVENT_ANNOTATION && event->type != KB_EVENT_CUSTOM_COUNTER)))
		return -EINVAL;
	note_timestamp(writer, event->timestamp);
	if (writer->shape.word == 8)
		return writer->swap ? encode_event(writer, event, 8, true)
				    : encode_event(writer, event, 8, false);
	return writer->swap ? encode_event(writer, event, 4, true)
			    : encode_event(writer, event, 4, false);
}

int kb_barman_writer_record(struct kb_barman_writer *writer, const void *record, size_t length)
{
	uint8_t *at;
	int error;

	if (kb_unlikely(writer->error.code))
		return writer->error.code;
	if (kb_unlikely(length < 16 || length & (writer->shape.word - 1)))
		return -EINVAL;
	note_timestamp(writer, kb_load64((const uint8_t *)record + 8, writer->swap));
	at = barman_reserve(writer, length, &error);
	if (kb_unlikely(!at))
		return error;
	memcpy(at, record, length);
	return 0;
}

/* One after the other: a circular store makes room for each, and keeps it in one piece. */
static int write_each(struct kb_barman_writer *writer, const uint8_t *blocks, size_t bytes)
{
	unsigned int word = writer->shape.word;
	int ret = 0;

	while (bytes && !ret) {
		uint64_t length = kb_load_word(blocks, word, writer->swap);

		if (bytes < word || length > bytes - word)
			return -EINVAL;
		ret = kb_barman_writer_record(writer, blocks + word, length);
		blocks += word + length;
		bytes -= word + length;
	}
	return ret;
}

int kb_barman_writer_blocks(struct kb_barman_writer *writer, const void *blocks, size_t bytes,
			    uint64_t newest)
{
	if (kb_unlikely(writer->error.code))
		return writer->error.code;
	if (kb_unlikely(bytes & (writer->shape.word - 1)))
		return -EINVAL;
	if (writer->ring)
		return write_each(writer, blocks, bytes);
	note_timestamp(writer, newest);
	return barman_append(writer, blocks, bytes);
}
