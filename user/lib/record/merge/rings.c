// SPDX-License-Identifier: MIT
/*
 * k-way merge of per-CPU rings.
 *
 * Every ring that has a readable record is in a binary heap, ordered by the timestamp of its
 * oldest record. Timestamps in a ring do not fall, so the top of the heap is the oldest
 * readable record. A ring without readable records (a dry ring) may still get a record; its
 * timestamp is at least that of the ring's last record, and at least the horizon. The smallest
 * of these bounds is the limit up to which records may be given out.
 *
 * A record costs one comparison while its ring stays the oldest, and log2(rings) otherwise. A run of
 * records that stay the oldest costs the heap one comparison, and each of them one. Nothing is
 * copied.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include <kbarman/device.h>

#include <kbarman/merge.h>

#include "base/heap.h"

#define WORD	sizeof(bm_uintptr)

struct source {
	const uint8_t *ring;
	uint64_t size;
	uint64_t position;		/* of the oldest block that was not given out */
	uint64_t end;			/* of the readable bytes */
	uint64_t timestamp;		/* of the record at position; if dry: of the last one */
	size_t length;			/* of the record at position */
	bool queued;			/* in the heap; false: dry */
	bool damaged;			/* damaged, and not reported yet */
};

struct entry {
	uint64_t timestamp;
	unsigned int source;
};

struct kb_merge {
	struct source *sources;
	struct entry *heap;		/* nr_queued */
	unsigned int max, nr, nr_queued, nr_damaged;
	uint64_t horizon;
	uint64_t limit;			/* records up to it may be given out */
	uint64_t newest;		/* largest timestamp given out */
	uint64_t unordered;
};

static bool older(const struct entry *a, const struct entry *b)
{
	return a->timestamp < b->timestamp ||
	       (a->timestamp == b->timestamp && a->source < b->source);
}

KB_HEAP(oldest, struct entry, older)

/*
 * Go to the record at position, skipping padding. False: the ring is dry, or damaged and
 * treated as dry.
 */
static bool source_load(struct kb_merge *merge, struct source *s)
{
	if (s->end - s->position > s->size)
		goto damaged;
	while (s->position != s->end) {
		uint64_t offset = s->position & (s->size - 1);
		uint64_t room = s->size - offset;
		const struct bm_protocol_record_header *header;
		bm_uintptr word, length;

		if (room > s->end - s->position)
			room = s->end - s->position;
		if (room < WORD)
			goto damaged;
		word = *(const bm_uintptr *)(s->ring + offset);
		length = word & ~BM_BLOCK_PADDING;
		if (length % WORD || length > room - WORD)
			goto damaged;
		if (word & BM_BLOCK_PADDING) {
			s->position += WORD + length;
			continue;
		}
		if (length < sizeof(*header))
			goto damaged;
		header = (const void *)(s->ring + offset + WORD);
		s->timestamp = header->timestamp;
		s->length = length;
		return true;
	}
	return false;

damaged:
	s->position = s->end;	/* a block boundary again */
	if (!s->damaged)
		merge->nr_damaged++;
	s->damaged = true;
	return false;
}

int kb_merge_create(struct kb_merge **out, unsigned int max_sources, struct kb_error *err)
{
	struct kb_merge *merge = calloc(1, sizeof(*merge));

	*out = NULL;
	if (!merge)
		goto err_memory;
	merge->max = max_sources;
	merge->sources = calloc(max_sources, sizeof(*merge->sources));
	merge->heap = calloc(max_sources, sizeof(*merge->heap));
	if (!merge->sources || !merge->heap) {
		kb_merge_destroy(merge);
		goto err_memory;
	}
	*out = merge;
	return 0;

err_memory:
	return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory for %u rings", max_sources);
}

void kb_merge_destroy(struct kb_merge *merge)
{
	if (!merge)
		return;
	free(merge->heap);
	free(merge->sources);
	free(merge);
}

int kb_merge_add(struct kb_merge *merge, const void *ring, uint64_t size, uint64_t position,
		 struct kb_error *err)
{
	struct source *s = &merge->sources[merge->nr];

	if (merge->nr == merge->max || size < WORD || size & (size - 1) || position % WORD ||
	    (uintptr_t)ring % 8)
		return kb_error_set(err, -EINVAL, KB_NO_OFFSET,
				    "ring %u can't be merged: its size is not a power of two, or "
				    "it is misaligned, or there are too many rings", merge->nr);
	s->ring = ring;
	s->size = size;
	s->position = position;
	s->end = position;
	return (int)merge->nr++;
}

void kb_merge_extend(struct kb_merge *merge, unsigned int source, uint64_t end)
{
	struct source *s = &merge->sources[source];

	s->end = end;
	if (s->queued || !source_load(merge, s))
		return;
	s->queued = true;
	merge->heap[merge->nr_queued] = (struct entry){ s->timestamp, source };
	oldest_up(merge->heap, merge->nr_queued++);
}

static uint64_t dry_bound(const struct kb_merge *merge, const struct source *s)
{
	return s->timestamp > merge->horizon ? s->timestamp : merge->horizon;
}

void kb_merge_horizon(struct kb_merge *merge, uint64_t timestamp)
{
	merge->horizon = timestamp;
	merge->limit = UINT64_MAX;
	for (unsigned int i = 0; i < merge->nr; i++) {
		const struct source *s = &merge->sources[i];

		if (!s->queued && dry_bound(merge, s) < merge->limit)
			merge->limit = dry_bound(merge, s);
	}
}

static int report_damage(struct kb_merge *merge, struct kb_error *err)
{
	for (unsigned int i = 0; i < merge->nr; i++) {
		struct source *s = &merge->sources[i];

		if (!s->damaged)
			continue;
		s->damaged = false;
		merge->nr_damaged--;
		return kb_error_set(err, -EBADMSG, s->position,
				    "ring %u is damaged before position %llu: the records up to "
				    "there were skipped", i, (unsigned long long)s->position);
	}
	return 0;
}

static void note_time(struct kb_merge *merge, uint64_t timestamp)
{
	if (timestamp < merge->newest)
		merge->unordered++;
	else
		merge->newest = timestamp;
}

/* The oldest ring's position has moved on. */
static void go_on(struct kb_merge *merge)
{
	struct entry *top = &merge->heap[0];
	struct source *s = &merge->sources[top->source];

	if (source_load(merge, s)) {
		top->timestamp = s->timestamp;
	} else {
		s->queued = false;
		if (dry_bound(merge, s) < merge->limit)
			merge->limit = dry_bound(merge, s);
		*top = merge->heap[--merge->nr_queued];
	}
	oldest_down(merge->heap, merge->nr_queued);
}

/* 1: @number is the ring with the oldest record; 0: its record has to wait, or there is none. */
static int oldest_ring(struct kb_merge *merge, unsigned int *number, struct kb_error *err)
{
	const struct entry *top = &merge->heap[0];

	if (merge->nr_damaged)
		return report_damage(merge, err);
	if (!merge->nr_queued || top->timestamp > merge->limit)
		return 0;
	*number = top->source;
	return 1;
}

int kb_merge_next(struct kb_merge *merge, struct kb_raw_record *record, struct kb_error *err)
{
	int found = oldest_ring(merge, &record->source, err);
	struct source *s;

	if (found <= 0)
		return found;

	s = &merge->sources[record->source];
	record->data = s->ring + (s->position & (s->size - 1)) + WORD;
	record->length = s->length;
	record->timestamp = s->timestamp;
	note_time(merge, s->timestamp);
	s->position += WORD + s->length;
	go_on(merge);
	return 1;
}

/* The newest time of a record of the oldest ring that comes before those of the other rings. */
static uint64_t run_limit(const struct kb_merge *merge)
{
	const struct entry *top = &merge->heap[0];
	uint64_t limit = merge->limit;

	for (unsigned int i = 1; i < 3 && i < merge->nr_queued; i++) {
		const struct entry *other = &merge->heap[i];
		/* At the same time the lower number comes first. */
		uint64_t before = other->timestamp - (other->source < top->source);

		if (before < limit)
			limit = before;
	}
	return limit;
}

/*
 * Passes over the record at the position of @s, and those behind it up to @limit. Stops in front of
 * everything that is not plainly a record: source_load() finds out what it is.
 */
static void pass_run(struct kb_merge *merge, struct source *s, uint64_t limit,
		     struct kb_raw_run *run)
{
	uint64_t offset = s->position & (s->size - 1), room = s->size - offset;
	const uint8_t *at = s->ring + offset, *end;
	uint64_t timestamp = s->timestamp;
	bm_uintptr length = s->length;

	if (room > s->end - s->position)
		room = s->end - s->position;
	end = at + room;
	run->blocks = at;
	run->records = 0;
	do {
		const struct bm_protocol_record_header *header;
		const size_t least = WORD + sizeof(*header);

		run->records++;
		note_time(merge, timestamp);
		at += WORD + length;
		if ((size_t)(end - at) < least)
			break;
		length = *(const bm_uintptr *)at;
		/* Padding has a length that is far too great. */
		if (length - sizeof(*header) > (size_t)(end - at) - least || length % WORD)
			break;
		header = (const void *)(at + WORD);
		timestamp = header->timestamp;
	} while (timestamp <= limit);
	run->bytes = (size_t)(at - (const uint8_t *)run->blocks);
}

int kb_merge_next_run(struct kb_merge *merge, struct kb_raw_run *run, struct kb_error *err)
{
	int found = oldest_ring(merge, &run->source, err);
	struct source *s;

	if (found <= 0)
		return found;

	s = &merge->sources[run->source];
	run->first = s->timestamp;
	pass_run(merge, s, run_limit(merge), run);
	run->last = merge->newest;
	s->position += run->bytes;
	go_on(merge);
	return 1;
}

uint64_t kb_merge_position(const struct kb_merge *merge, unsigned int source)
{
	return merge->sources[source].position;
}

uint64_t kb_merge_unordered(const struct kb_merge *merge)
{
	return merge->unordered;
}
