/* SPDX-License-Identifier: MIT */
/*
 * A ring as uapi/kbarman.h describes it, written by a test: one block after the
 * other, a padding block where the next one would straddle the end, the oldest
 * ones overwritten if @overwrite.
 */
#ifndef KBARMAN_TEST_RING_WRITER_H
#define KBARMAN_TEST_RING_WRITER_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <kbarman/device.h>

#define WORD	sizeof(bm_uintptr)

struct ring_writer {
	uint8_t *bytes;
	uint64_t size;			/* a power of two */
	uint64_t write, read;
	bool overwrite;
};

static inline void ring_writer_init(struct ring_writer *w, uint64_t size, bool overwrite)
{
	*w = (struct ring_writer){ .size = size, .overwrite = overwrite };
	w->bytes = aligned_alloc(64, size);
	memset(w->bytes, 0xee, size);
}

static inline bm_uintptr *ring_word(const struct ring_writer *w, uint64_t position)
{
	return (bm_uintptr *)(w->bytes + (position & (w->size - 1)));
}

/* Free @length bytes; false: there is no room. */
static inline bool ring_make_room(struct ring_writer *w, uint64_t length)
{
	while (w->write + length - w->read > w->size) {
		if (!w->overwrite)
			return false;
		w->read += WORD + (*ring_word(w, w->read) & ~BM_BLOCK_PADDING);
	}
	return true;
}

/*
 * A record of @length bytes, a multiple of the word, at least 24: a header, then @mark
 * in its next word and zeros. False: no room.
 */
static inline bool ring_put(struct ring_writer *w, unsigned int core, uint64_t timestamp,
			    uint64_t length, uint32_t mark)
{
	uint64_t left = w->size - (w->write & (w->size - 1));
	uint64_t padding = left < WORD + length ? left : 0;
	struct bm_protocol_record_header header = {
		.record_type = BM_RECORD_TASK_SWITCH,
		.core = core,
		.timestamp = timestamp,
	};
	uint8_t *record;

	if (!ring_make_room(w, padding + WORD + length))
		return false;
	if (padding) {
		*ring_word(w, w->write) = BM_BLOCK_PADDING | (bm_uintptr)(padding - WORD);
		w->write += padding;
	}
	*ring_word(w, w->write) = (bm_uintptr)length;
	record = (uint8_t *)(ring_word(w, w->write) + 1);
	memset(record, 0, length);
	memcpy(record, &header, sizeof(header));
	memcpy(record + sizeof(header), &mark, sizeof(mark));
	w->write += WORD + length;
	return true;
}

/* A block without a record. */
static inline void ring_put_padding(struct ring_writer *w, uint64_t length)
{
	if (!ring_make_room(w, WORD + length))
		return;
	*ring_word(w, w->write) = BM_BLOCK_PADDING | (bm_uintptr)length;
	w->write += WORD + length;
}

#endif
