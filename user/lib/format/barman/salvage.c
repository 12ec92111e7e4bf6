// SPDX-License-Identifier: MIT
/*
 * Reads a capture that was cut off. The recorder updates the header only from time to time, so
 * blocks may stand after those that the header counts. The last blocks may be missing or
 * incomplete, or be bytes that were never written. This walks over the blocks once and lets the
 * reader end after the last whole one.
 *
 * Blocks that the header counts were whole when it was written: among these a record that can't
 * be decoded is skipped, as usual. Behind them, the first such record is the end.
 */
#include <errno.h>

#include "format/barman/decode.h"

/* Whether this is a record as a recorder writes it. */
static bool is_record(struct kb_barman *barman, const uint8_t *record, uint64_t length, uint64_t at)
{
	unsigned int word = barman->header.word_size;
	bool swap = barman->header.big_endian != KB_HOST_BIG_ENDIAN;
	struct kb_event event = { .offset = at };

	return decode_record(barman, &event, record, length, word, swap) &&
	       event.type != KB_EVENT_UNKNOWN;
}

/*
 * The length of the block at @at if it ends before @end, else 0. With @strict it must be a
 * record.
 */
static uint64_t whole_block(struct kb_barman *barman, uint64_t at, uint64_t end, bool strict,
			    struct kb_error *why)
{
	unsigned int word = barman->header.word_size;
	bool swap = barman->header.big_endian != KB_HOST_BIG_ENDIAN;
	uint64_t padding_bit = UINT64_C(1) << (word * 8 - 1), length, whole;
	const uint8_t *bytes;
	size_t got;

	why->code = 0;
	if (end - at < word)
		return 0;
	bytes = kb_source_at(&barman->source, at, word, &got, why);
	if (got < word)
		return 0;
	length = kb_load_word(bytes, word, swap);
	whole = word + (length & ~padding_bit);
	/* Nobody writes empty blocks: these are zeros of the file system. */
	if (!length || whole < word || whole > end - at)
		return 0;
	if (!strict)
		return whole;
	if (length & padding_bit || whole > BARMAN_BLOCK_MAX)
		return 0;
	bytes = kb_source_at(&barman->source, at, whole, &got, why);
	return got >= whole && is_record(barman, bytes + word, length, at) ? whole : 0;
}

/* Move *@at from block to block, up to the first block that is not whole or not in the file. */
static int walk(struct kb_barman *barman, uint64_t *at, uint64_t end, bool strict,
		struct kb_error *err)
{
	struct kb_error why;
	uint64_t whole;

	why.code = 0;
	if (end > barman->source.size)
		end = barman->source.size;
	while (*at < end && (whole = whole_block(barman, *at, end, strict, &why)))
		*at += whole;
	if (why.code && err)
		*err = why;
	return why.code;
}

/*
 * Whether there may be blocks after the store: in one that grows, as the recorder's does. A
 * store of fixed length that is not full has old data there.
 */
static bool grows(const struct kb_barman *barman)
{
	const struct kb_header *h = &barman->header;

	return h->data_store_type == KB_STORE_LINEAR && !barman->open_ended &&
	       h->write_offset == h->buffer_length;
}

static int salvage_segment(struct kb_barman *barman, struct barman_segment *segment,
			   struct kb_salvage *salvage, struct kb_error *err)
{
	uint64_t size = barman->source.size, at = segment->start, told, end = segment->end;
	uint64_t stacks = barman->stacks;
	int ret = walk(barman, &at, end, false, err);

	told = at;
	if (!ret && at == end && grows(barman)) {
		ret = walk(barman, &at, UINT64_MAX, true, err);
		end = size > at ? size : at;
	}
	segment->end = at;
	salvage->told += told - segment->start;
	salvage->untold += at - told;
	salvage->stacks += barman->stacks - stacks;
	if (size < end && !barman->open_ended)
		salvage->missing += end - (size > at ? size : at);
	salvage->dropped += (size < end ? size : end) > at ? (size < end ? size : end) - at : 0;
	return ret;
}

int kb_barman_salvage(struct kb_barman *barman, struct kb_salvage *salvage, struct kb_error *err)
{
	int ret;

	*salvage = (struct kb_salvage){ 0 };
	barman->salvaged = false;
	ret = kb_barman_rewind(barman);
	if (ret)
		return kb_error_set(err, ret, KB_NO_OFFSET, "%s: can't be read twice",
				    barman->source.name);
	ret = kb_source_spool(&barman->source, err);
	/* An empty store has no segment, but there may be blocks after it. */
	if (!barman->nr_segments)
		barman->segments[barman->nr_segments++] = (struct barman_segment){
			barman->header.buffer_start, barman->header.buffer_start };
	for (unsigned int i = 0; i < barman->nr_segments && !ret; i++)
		ret = salvage_segment(barman, &barman->segments[i], salvage, err);
	barman->salvaged = true;
	barman_cursor_init(barman);
	return ret;
}
