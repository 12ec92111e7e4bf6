// SPDX-License-Identifier: MIT
/*
 * Each CPU has a small buffer into which the new bytes of its ring are copied, as uapi/kbarman.h says
 * that a running ring is read: copy, then look how far the writer has come. A heap gives the oldest
 * record of all buffers.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <kbarman/device.h>

#include "base/clock.h"
#include "base/heap.h"
#include "record/merge/follow.h"

#define WORD		sizeof(bm_uintptr)
#define BUFFER_BYTES	(64U << 10)
#define BLOCK_MAX	(16U << 20)	/* a longer one is damage */
#define FIND_MS		1000		/* between two looks for new CPUs */

struct ring {
	struct kb_mapped mapped;
	bool is_mapped, queued;
	uint64_t next;			/* position of the ring: what is not copied yet begins there */
	uint64_t end;			/* what was written at the last look */
	uint64_t note;
	uint8_t *bytes;
	size_t at, have, room;		/* [at, have) is not given out */
	bool has_gap;			/* in front of the bytes at gap_at, which no queued record has */
	size_t gap_at;
	uint64_t timestamp;		/* of the record at `at`, if queued */
	uint64_t last;			/* of the last one that was given out; without any: not behind the first */
	size_t block;			/* bytes of the record at `at`, if queued, */
	bool behind_gap;		/* ... and whether the gap is in front of it */
};

struct entry {
	uint64_t timestamp;
	uint32_t cpu;
};

static bool older(const struct entry *a, const struct entry *b)
{
	return a->timestamp < b->timestamp || (a->timestamp == b->timestamp && a->cpu < b->cpu);
}

KB_HEAP(oldest, struct entry, older)

struct kb_follow {
	struct kb_device *device;
	struct ring *rings;		/* nr_cpus */
	uint32_t nr_cpus, first;	/* first: a CPU that has a ring */
	struct entry *heap;
	size_t nr_queued;
	uint32_t given;			/* the CPU of the record that was given out last; ~0: none */
	int64_t found_ms;
	uint64_t found;			/* now at that time */
	bool begun;
	struct kb_follow_stats stats;
};

/* ---- a ring ---- */

/* The whole blocks of [at, have): what is behind them is a part of one. */
static size_t whole_blocks(const struct ring *ring)
{
	size_t at = ring->at;

	while (ring->have - at >= WORD) {
		bm_uintptr word;
		size_t length;

		memcpy(&word, ring->bytes + at, WORD);
		length = word & ~BM_BLOCK_PADDING;
		if (length > ring->have - at - WORD)
			break;
		at += WORD + length;
	}
	return at;
}

/* The bytes of the ring up to @position are gone. */
static void lose(struct kb_follow *follow, struct ring *ring, uint64_t position)
{
	follow->stats.lost_bytes += position - ring->next;
	follow->stats.lost_times++;
	ring->next = position;
	if (ring->has_gap) {
		/* there is room to tell of one gap, so it becomes longer; padding may have been skipped */
		size_t keep = ring->gap_at > ring->at ? ring->gap_at : ring->at;

		follow->stats.lost_bytes += ring->have - keep;
		ring->have = keep;
	} else {
		ring->have = whole_blocks(ring);
	}
	ring->has_gap = true;
	ring->gap_at = ring->have;
}

static void compact(struct ring *ring)
{
	if (!ring->at)
		return;
	memmove(ring->bytes, ring->bytes + ring->at, ring->have - ring->at);
	ring->have -= ring->at;
	ring->gap_at -= ring->has_gap && ring->gap_at > ring->at ? ring->at : ring->gap_at;
	ring->at = 0;
}

/* Copy as much as there is room for. */
static void copy(struct kb_follow *follow, struct ring *ring)
{
	const struct kb_mapped *m = &ring->mapped;
	uint64_t gone = kb_mapped_read_offset(m, ring->next);
	size_t n, first, from;

	if ((int64_t)(gone - ring->next) > 0)
		lose(follow, ring, gone);
	if ((int64_t)(ring->next - ring->end) > 0)
		ring->end = ring->next;
	n = ring->end - ring->next;
	if (n > ring->room - ring->have)
		n = ring->room - ring->have;
	from = ring->next & (m->ring_bytes - 1);
	first = m->ring_bytes - from < n ? m->ring_bytes - from : n;
	memcpy(ring->bytes + ring->have, m->ring + from, first);
	memcpy(ring->bytes + ring->have + first, m->ring, n - first);
	__atomic_thread_fence(__ATOMIC_ACQUIRE);	/* pairs with [A] */
	gone = kb_mapped_read_offset(m, ring->next);
	if ((int64_t)(gone - ring->next) <= 0) {
		ring->have += n;
		ring->next += n;
		return;
	}
	/* What was overwritten meanwhile is at the front of the copy. */
	first = gone - ring->next < n ? (size_t)(gone - ring->next) : n;
	from = ring->have;
	lose(follow, ring, gone);
	if (first == n)
		return;
	memmove(ring->bytes + ring->have, ring->bytes + from + first, n - first);
	ring->have += n - first;
	ring->next += n - first;
}

/* The ring's bytes make no sense: go on with what comes. */
static void skip_damage(struct kb_follow *follow, struct ring *ring)
{
	ring->has_gap = false;
	follow->stats.lost_bytes += ring->have - ring->at;
	ring->have = ring->at;
	lose(follow, ring, ring->end);
}

/*
 * Go to the next whole record of @ring, skipping padding. Returns 1, 0: there is none; or -ENOMEM.
 */
static int load(struct kb_follow *follow, struct ring *ring)
{
	for (;;) {
		struct bm_protocol_record_header header;
		bm_uintptr word = 0;
		size_t length = 0, have = ring->have - ring->at;

		if (have >= WORD) {
			memcpy(&word, ring->bytes + ring->at, WORD);
			length = word & ~BM_BLOCK_PADDING;
			if (length % WORD || length > BLOCK_MAX ||
			    (!(word & BM_BLOCK_PADDING) && length < sizeof(header))) {
				skip_damage(follow, ring);
				continue;
			}
		}
		if (have < WORD || length > have - WORD) {
			if (ring->next == ring->end)
				return 0;
			compact(ring);
			if (WORD + length > ring->room) {
				uint8_t *bytes = realloc(ring->bytes, WORD + length);

				if (!bytes)
					return -ENOMEM;
				ring->bytes = bytes;
				ring->room = WORD + length;
			}
			copy(follow, ring);
			continue;
		}
		if (word & BM_BLOCK_PADDING) {
			ring->at += WORD + length;
			continue;
		}
		memcpy(&header, ring->bytes + ring->at + WORD, sizeof(header));
		ring->timestamp = header.timestamp;
		ring->block = WORD + length;
		/* it stays, also if more is lost behind it before it is given out */
		ring->behind_gap = ring->has_gap && ring->at >= ring->gap_at;
		ring->has_gap = ring->has_gap && !ring->behind_gap;
		return 1;
	}
}

/*
 * What is too new to be given out waits in the buffer, not in the ring, where it would be overwritten.
 * So a buffer becomes as large as what comes in that time; later it becomes small again.
 */
static int copy_rest(struct kb_follow *follow, struct ring *ring)
{
	size_t wanted = ring->have - ring->at + (size_t)(ring->end - ring->next), room = BUFFER_BYTES;
	uint8_t *bytes;

	while (room < wanted)
		room *= 2;
	if (ring->next == ring->end && room >= ring->room / 4)
		return 0;
	compact(ring);
	if (room > ring->room || room < ring->room / 4) {
		bytes = realloc(ring->bytes, room);
		if (!bytes)
			return -ENOMEM;
		ring->bytes = bytes;
		ring->room = room;
	}
	if (ring->next != ring->end)
		copy(follow, ring);
	return 0;
}

static int queue(struct kb_follow *follow, uint32_t cpu)
{
	struct ring *ring = &follow->rings[cpu];
	int ret = load(follow, ring);

	if (ret <= 0)
		return ret;
	ring->queued = true;
	follow->heap[follow->nr_queued] = (struct entry){ ring->timestamp, cpu };
	oldest_up(follow->heap, follow->nr_queued++);
	return 0;
}

/* ---- all rings ---- */

static int add_ring(struct kb_follow *follow, uint32_t cpu, struct kb_error *err)
{
	struct ring *ring = &follow->rings[cpu];
	int ret = kb_device_map(follow->device, cpu, &ring->mapped, err);

	if (ret)
		return ret;
	ring->is_mapped = true;
	ring->room = ring->mapped.ring_bytes < BUFFER_BYTES ? ring->mapped.ring_bytes : BUFFER_BYTES;
	ring->bytes = malloc(ring->room);
	if (!ring->bytes)
		return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
	/* A CPU that comes later has no record that is old. */
	ring->next = follow->begun ? kb_mapped_read_offset(&ring->mapped, 0)
			      : kb_mapped_write_offset(&ring->mapped, 0);
	ring->end = ring->note = ring->next;
	ring->last = follow->found;
	return 0;
}

/* A CPU of the session has a ring as soon as the kernel has stats of it. */
static int find_rings(struct kb_follow *follow, uint64_t ticks, struct kb_error *err)
{
	int64_t now = kb_clock_ms();
	int ret = 0;

	if (follow->begun && now - follow->found_ms < FIND_MS)
		return 0;
	follow->found_ms = now;
	if (!follow->begun)
		follow->found = ticks;
	for (uint32_t cpu = 0; cpu < follow->nr_cpus && !ret; cpu++) {
		struct kbarman_stats stats;

		if (follow->rings[cpu].is_mapped ||
		    kb_device_stats(follow->device, cpu, &stats, NULL))
			continue;
		ret = add_ring(follow, cpu, err);
		if (follow->first == UINT32_MAX)
			follow->first = cpu;
	}
	follow->found = ticks;
	return ret;
}

int kb_follow_create(struct kb_follow **out, struct kb_device *device, struct kb_error *err)
{
	struct kb_follow *follow = calloc(1, sizeof(*follow));
	struct kbarman_clock clock;
	struct kbarman_query query;
	int ret;

	*out = NULL;
	if (!follow)
		return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
	follow->device = device;
	follow->given = follow->first = UINT32_MAX;
	ret = kb_device_query(device, &query, err) ?: kb_device_clock(device, &clock, err);
	if (!ret) {
		follow->nr_cpus = query.nr_cpus;
		follow->rings = calloc((size_t)query.nr_cpus + 1, sizeof(*follow->rings));
		follow->heap = calloc((size_t)query.nr_cpus + 1, sizeof(*follow->heap));
		ret = follow->rings && follow->heap ? find_rings(follow, clock.now.timestamp, err) :
		      kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
	}
	if (!ret && follow->first == UINT32_MAX)
		ret = kb_error_set(err, -ENODEV, KB_NO_OFFSET,
				   "none of the CPUs to record is there");
	if (ret) {
		kb_follow_destroy(follow);
		return ret;
	}
	follow->begun = true;
	*out = follow;
	return 0;
}

void kb_follow_destroy(struct kb_follow *follow)
{
	if (!follow)
		return;
	for (uint32_t cpu = 0; follow->rings && cpu < follow->nr_cpus; cpu++) {
		kb_mapped_unmap(&follow->rings[cpu].mapped);
		free(follow->rings[cpu].bytes);
	}
	free(follow->rings);
	free(follow->heap);
	free(follow);
}

/* The record that was given out is over. */
static int pass_given(struct kb_follow *follow)
{
	struct ring *ring = &follow->rings[follow->given];
	uint32_t cpu = follow->given;

	if (cpu == UINT32_MAX)
		return 0;
	follow->given = UINT32_MAX;
	ring->last = ring->timestamp;
	ring->at += ring->block;
	ring->queued = false;
	return queue(follow, cpu);
}

int kb_follow_look(struct kb_follow *follow, uint64_t *now, struct kb_error *err)
{
	struct kbarman_clock clock;
	/* Read the clock first: records stamped later are newer. */
	int ret = kb_device_clock(follow->device, &clock, err);

	if (ret)
		return ret;
	*now = clock.now.timestamp;
	ret = find_rings(follow, *now, err);
	if (ret)
		return ret;
	if (pass_given(follow))
		return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
	follow->stats.fill = 0;
	for (uint32_t cpu = 0; cpu < follow->nr_cpus; cpu++) {
		struct ring *ring = &follow->rings[cpu];
		unsigned int fill;

		if (!ring->is_mapped)
			continue;
		ring->end = kb_mapped_write_offset(&ring->mapped, ring->next);
		fill = (unsigned int)((ring->end - ring->next) * 100 / ring->mapped.ring_bytes);
		follow->stats.fill = fill > follow->stats.fill ? fill : follow->stats.fill;
		if (!ring->queued && queue(follow, cpu))
			return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
	}
	return 0;
}

static int copy_all(struct kb_follow *follow)
{
	int ret = 0;

	for (uint32_t cpu = 0; cpu < follow->nr_cpus && !ret; cpu++) {
		if (follow->rings[cpu].is_mapped)
			ret = copy_rest(follow, &follow->rings[cpu]);
		/* A loss may have left nothing in front of what is new. */
		if (!ret && follow->rings[cpu].is_mapped && !follow->rings[cpu].queued)
			ret = queue(follow, cpu);
	}
	return ret;
}

int kb_follow_next(struct kb_follow *follow, uint64_t horizon, struct kb_followed *record)
{
	struct ring *ring;

	if (pass_given(follow))
		return -ENOMEM;
	if (!follow->nr_queued || follow->heap[0].timestamp > horizon)
		return copy_all(follow);
	follow->given = follow->heap[0].cpu;
	follow->heap[0] = follow->heap[--follow->nr_queued];
	oldest_down(follow->heap, follow->nr_queued);
	ring = &follow->rings[follow->given];
	*record = (struct kb_followed){
		.block = ring->bytes + ring->at,
		.bytes = ring->block,
		.timestamp = ring->timestamp,
		.cpu = follow->given,
		.behind_gap = ring->behind_gap,
		.gap_from = ring->last,
	};
	return 1;
}

/* ---- what was seen ---- */

const struct kb_mapped *kb_follow_header(const struct kb_follow *follow)
{
	return &follow->rings[follow->first].mapped;
}

void kb_follow_stats(const struct kb_follow *follow, struct kb_follow_stats *stats)
{
	*stats = follow->stats;
}

void kb_follow_note(struct kb_follow *follow)
{
	for (uint32_t cpu = 0; cpu < follow->nr_cpus; cpu++)
		follow->rings[cpu].note = follow->rings[cpu].next;
}

unsigned int kb_follow_since_note(const struct kb_follow *follow)
{
	uint64_t most = 0;

	for (uint32_t cpu = 0; cpu < follow->nr_cpus; cpu++) {
		const struct ring *ring = &follow->rings[cpu];
		uint64_t written = ring->is_mapped ?
				   kb_mapped_write_offset(&ring->mapped, ring->next) - ring->note : 0;
		uint64_t percent = ring->is_mapped ? written * 100 / ring->mapped.ring_bytes : 0;

		most = percent > most ? percent : most;
	}
	return (unsigned int)most;
}
