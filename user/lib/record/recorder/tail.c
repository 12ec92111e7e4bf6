// SPDX-License-Identifier: MIT
/*
 * A recorder that is killed takes along what it has in memory. Records may wait there for long: for
 * the file of a program that is being read, or for the end of a wait. So they are behind the end of
 * the file meanwhile, as they came from the kernel, where kb_barman_salvage() finds them.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "format/barman/writer.h"
#include "record/recorder/inside.h"
#include "record/recorder/waiting.h"

#define PIECE_BYTES	((size_t)256 << 10)	/* are written at a time */

struct tail {
	struct kb_barman_writer *writer;
	uint64_t skip;		/* records that are there already */
	uint64_t records;	/* that were seen */
	uint8_t *blocks;
	size_t used, room;
};

static int write_blocks(struct tail *tail)
{
	int ret = tail->used ? barman_write_tail(tail->writer, tail->blocks, tail->used) : 0;

	tail->used = 0;
	return ret;
}

static int add_record(struct tail *tail, const struct kb_raw_record *record)
{
	bm_uintptr length = (bm_uintptr)record->length;
	size_t bytes = sizeof(length) + record->length;

	if (tail->records++ < tail->skip)
		return 0;
	if (!KB_ARRAY_ROOM(tail->blocks, tail->room, tail->used + bytes))
		return -ENOMEM;
	memcpy(tail->blocks + tail->used, &length, sizeof(length));
	memcpy(tail->blocks + tail->used + sizeof(length), record->data, record->length);
	tail->used += bytes;
	return tail->used < PIECE_BYTES ? 0 : write_blocks(tail);
}

static int add_records(struct tail *tail, const struct kb_waiting *waiting)
{
	struct kb_raw_record record;
	size_t at = 0;
	int ret = 0;

	while (!ret && waiting && kb_waiting_next(waiting, &at, &record))
		ret = add_record(tail, &record);
	return ret;
}

int recorder_tail_write(struct kb_recorder *recorder)
{
	struct tail tail = { .writer = recorder->writer };
	int ret;

	if (recorder->part || (!recorder->stacks && !recorder->short_waits))
		return 0;
	ret = barman_flush(recorder->writer);
	/* Records leave in their order: if none has left, the first ones are there. */
	if (recorder->writer->tail)
		tail.skip = recorder->tail_records;
	/* What waits for stacks has come from there. */
	ret = ret ?: add_records(&tail, recorder_stacks_waiting(recorder)) ?:
	      add_records(&tail, recorder_waits_waiting(recorder)) ?: write_blocks(&tail);
	recorder->tail_records = tail.records;
	free(tail.blocks);
	return ret;
}
