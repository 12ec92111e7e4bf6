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
static bool source_load(struct kb_merge *m, struct source *s)
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
		m->nr_damaged++;
	s->damaged = true;
	return false;
}

int kb_merge_create(struct kb_merge **out, unsigned int max_sources, struct kb_error *err)
{
	struct kb_merge *m = calloc(1, sizeof(*m));

	*out = NULL;
	if (!m)
		goto err_memory;
	m->max = max_sources;
	m->sources = calloc(max_sources, sizeof(*m->sources));
	m->heap = calloc(max_sources, sizeof(*m->heap));
	if (!m->sources || !m->heap) {
		kb_merge_destroy(m);
		goto err_memory;
	}
	*out = m;
	return 0;

err_memory:
	return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory for %u rings", max_sources);
}

void kb_merge_destroy(struct kb_merge *m)
{
	if (!m)
		return;
	free(m->heap);
	free(m->sources);
	free(m);
}

int kb_merge_add(struct kb_merge *m, const void *ring, uint64_t size, uint64_t position,
		 struct kb_error *err)
{
	struct source *s = &m->sources[m->nr];

	if (m->nr == m->max || size < WORD || size & (size - 1) || position % WORD ||
	    (uintptr_t)ring % 8)
		return kb_error_set(err, -EINVAL, KB_NO_OFFSET,
				    "ring %u can't be merged: its size is not a power of two, or "
				    "it is misaligned, or there are too many rings", m->nr);
	s->ring = ring;
	s->size = size;
	s->position = position;
	s->end = position;
	return (int)m->nr++;
}

void kb_merge_extend(struct kb_merge *m, unsigned int source, uint64_t end)
{
	struct source *s = &m->sources[source];

	s->end = end;
	if (s->queued || !source_load(m, s))
		return;
	s->queued = true;
	m->heap[m->nr_queued] = (struct entry){ s->timestamp, source };
	oldest_up(m->heap, m->nr_queued++);
}

static uint64_t dry_bound(const struct kb_merge *m, const struct source *s)
{
	return s->timestamp > m->horizon ? s->timestamp : m->horizon;
}

void kb_merge_horizon(struct kb_merge *m, uint64_t timestamp)
{
	m->horizon = timestamp;
	m->limit = UINT64_MAX;
	for (unsigned int i = 0; i < m->nr; i++) {
		const struct source *s = &m->sources[i];

		if (!s->queued && dry_bound(m, s) < m->limit)
			m->limit = dry_bound(m, s);
	}
}

static int report_damage(struct kb_merge *m, struct kb_error *err)
{
	for (unsigned int i = 0; i < m->nr; i++) {
		struct source *s = &m->sources[i];

		if (!s->damaged)
			continue;
		s->damaged = false;
		m->nr_damaged--;
		return kb_error_set(err, -EBADMSG, s->position,
				    "ring %u is damaged before position %llu: the records up to "
				    "there were skipped", i, (unsigned long long)s->position);
	}
	return 0;
}

static void note_time(struct kb_merge *m, uint64_t timestamp)
{
	if (timestamp < m->newest)
		m->unordered++;
	else
		m->newest = timestamp;
}

/* The oldest ring's position has moved on. */
static void go_on(struct kb_merge *m)
{
	struct entry *top = &m->heap[0];
	struct source *s = &m->sources[top->source];

	if (source_load(m, s)) {
		top->timestamp = s->timestamp;
	} else {
		s->queued = false;
		if (dry_bound(m, s) < m->limit)
			m->limit = dry_bound(m, s);
		*top = m->heap[--m->nr_queued];
	}
	oldest_down(m->heap, m->nr_queued);
}

/* 1: @number is the ring with the oldest record; 0: its record has to wait, or there is none. */
static int oldest_ring(struct kb_merge *m, unsigned int *number, struct kb_error *err)
{
	const struct entry *top = &m->heap[0];

	if (m->nr_damaged)
		return report_damage(m, err);
	if (!m->nr_queued || top->timestamp > m->limit)
		return 0;
	*number = top->source;
	return 1;
}

int kb_merge_next(struct kb_merge *m, struct kb_raw_record *record, struct kb_error *err)
{
	int found = oldest_ring(m, &record->source, err);
	struct source *s;

	if (found <= 0)
		return found;

	s = &m->sources[record->source];
	record->data = s->ring + (s->position & (s->size - 1)) + WORD;
	record->length = s->length;
	record->timestamp = s->timestamp;
	note_time(m, s->timestamp);
	s->position += WORD + s->length;
	go_on(m);
	return 1;
}

/* The newest time of a record of the oldest ring that comes before those of the other rings. */
static uint64_t run_limit(const struct kb_merge *m)
{
	const struct entry *top = &m->heap[0];
	uint64_t limit = m->limit;

	for (unsigned int i = 1; i < 3 && i < m->nr_queued; i++) {
		const struct entry *other = &m->heap[i];
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
static void pass_run(struct kb_merge *m, struct source *s, uint64_t limit, struct kb_raw_run *run)
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
		note_time(m, timestamp);
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

int kb_merge_next_run(struct kb_merge *m, struct kb_raw_run *run, struct kb_error *err)
{
	int found = oldest_ring(m, &run->source, err);
	struct source *s;

	if (found <= 0)
		return found;

	s = &m->sources[run->source];
	run->first = s->timestamp;
	pass_run(m, s, run_limit(m), run);
	run->last = m->newest;
	s->position += run->bytes;
	go_on(m);
	return 1;
}

uint64_t kb_merge_position(const struct kb_merge *m, unsigned int source)
{
	return m->sources[source].position;
}

uint64_t kb_merge_unordered(const struct kb_merge *m)
{
	return m->unordered;
}
