// SPDX-License-Identifier: MIT
/*
 * See insert.h. Records come nearly in order, so the search for a record's place starts at the
 * end.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <kbarman/device.h>

#include "base/array.h"
#include "record/recorder/insert.h"

#define WORD		sizeof(bm_uintptr)
#define RING_BYTES	((uint64_t)4 << 20)	/* of address space; pages come with records */

int kb_insert_create(struct kb_insert *insert, size_t limit, bool newest)
{
	*insert = (struct kb_insert){
		.limit = limit,
		.newest = newest,
		.ring = calloc(1, RING_BYTES),
		.size = RING_BYTES,
	};
	return insert->ring ? 0 : -ENOMEM;
}

void kb_insert_destroy(struct kb_insert *insert)
{
	for (size_t i = 0; i < insert->nr; i++)
		free(insert->pending[insert->first + i].record);
	free(insert->pending);
	free(insert->ring);
}

static void drop_first(struct kb_insert *insert)
{
	struct kb_inserted *first = &insert->pending[insert->first];

	insert->bytes -= first->length;
	free(first->record);
	insert->first++;
	insert->nr--;
}

/* Make room for one more record at the end. */
static int make_room(struct kb_insert *insert)
{
	struct kb_inserted *pending = insert->pending;
	size_t end = insert->first + insert->nr;

	if (end == insert->room && insert->first > insert->room / 2) {
		memmove(pending, pending + insert->first, insert->nr * sizeof(*pending));
		insert->first = 0;
		return 0;
	}
	return KB_ARRAY_ROOM(insert->pending, insert->room, end + 1) ? 0 : -ENOMEM;
}

int kb_insert_add(struct kb_insert *insert, const void *record, size_t length)
{
	size_t whole = (length + WORD - 1) / WORD * WORD, place;
	uint64_t timestamp;
	uint8_t *copy;

	if (whole > RING_BYTES / 4 || (!insert->newest && insert->bytes + whole > insert->limit)) {
		insert->dropped++;
		return 0;
	}
	if (make_room(insert))
		return -ENOMEM;
	copy = calloc(1, whole);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, record, length);
	timestamp = ((const struct bm_protocol_record_header *)copy)->timestamp;

	place = insert->first + insert->nr;
	while (place > insert->first && insert->pending[place - 1].timestamp > timestamp)
		place--;
	memmove(insert->pending + place + 1, insert->pending + place,
		(insert->first + insert->nr - place) * sizeof(*insert->pending));
	insert->pending[place] = (struct kb_inserted){ timestamp, whole, copy };
	insert->nr++;
	insert->bytes += whole;
	while (insert->bytes > insert->limit) {
		drop_first(insert);
		insert->dropped++;
	}
	return 0;
}

/*
 * Copy the first record into the ring as the kernel would: a block in one piece, behind padding
 * if it does not fit before the ring's end.
 */
static bool move_first(struct kb_insert *insert, uint64_t position)
{
	const struct kb_inserted *first = &insert->pending[insert->first];
	uint64_t offset = insert->end & (insert->size - 1), block = WORD + first->length;
	uint64_t pad = offset + block > insert->size ? insert->size - offset : 0;
	bm_uintptr word;

	if (insert->end + pad + block - position > insert->size)
		return false;
	if (pad) {
		word = BM_BLOCK_PADDING | (bm_uintptr)(pad - WORD);
		memcpy(insert->ring + offset, &word, WORD);
		insert->end += pad;
		offset = 0;
	}
	word = (bm_uintptr)first->length;
	memcpy(insert->ring + offset, &word, WORD);
	memcpy(insert->ring + offset + WORD, first->record, first->length);
	insert->end += block;
	insert->count++;
	drop_first(insert);
	return true;
}

uint64_t kb_insert_move(struct kb_insert *insert, uint64_t horizon, uint64_t position)
{
	while (insert->nr && insert->pending[insert->first].timestamp <= horizon) {
		uint64_t timestamp = insert->pending[insert->first].timestamp;

		if (!move_first(insert, position))
			return timestamp;
	}
	return horizon;
}
