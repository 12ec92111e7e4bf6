// SPDX-License-Identifier: GPL-2.0-only
/* Which of the rows that are over a ring still needs. */
#include <linux/sched.h>
#include <linux/string.h>

#include "capture/collector.h"

/*
 * The piece at hand has records that mean @id in [@from, @to]. A ring's records come in the order
 * of time, so a pass over a piece looks at each row once: when the first record comes that is not
 * older than the row.
 */
static void overs_note(struct kbarman_collector *it, struct kbarman_overs *overs, u32 id, u64 from,
		       u64 to)
{
	u32 first = kbarman_overs_first(overs, id), next;

	if (first == overs->count)
		return;
	if (overs->rows[first].pass != it->pass) {
		overs->rows[first].pass = it->pass;
		overs->rows[first].next = first;
	}
	for (next = overs->rows[first].next; next < overs->count; next++) {
		struct kbarman_over *over = &overs->rows[next];

		if (over->id != id || over->from > to + it->slack)
			break;
		if (from <= over->until + it->slack)
			over->piece = it->piece;
	}
	overs->rows[first].next = next;
}

/* The ring at hand is another one, or is read once more. */
static void overs_rewind(struct kbarman_overs *overs)
{
	u32 i;

	for (i = 0; i < overs->count; i++)
		overs->rows[i].piece = NO_PIECE;
	overs->last = overs->count;
}

/* The record at @position comes next. */
static void collector_enter_piece(struct kbarman_collector *it, unsigned long position)
{
	u32 piece = 0;

	if (!kbarman_ring_after(it->base, position))
		piece = min((position - it->base) >> it->shift, LAST_PIECE - 1UL) + 1;
	if (piece != it->piece)
		it->pass++;
	it->piece = piece;
}

/* Every record of a task begins with this: struct bm_protocol_sample, _task_switch, … */
struct record {
	bm_uintptr length;
	struct bm_protocol_record_header header;
	u32 task_id;
} __packed;

/* Who runs on the ring's CPU, and since when; KBARMAN_NO_TASK: not known. */
struct current_task {
	u32 id;
	u64 since;
};

static void collector_note_task(struct kbarman_collector *it, u32 id, u64 from, u64 to)
{
	overs_note(it, &it->tasks, id, from, to);
	overs_note(it, &it->maps, id, from, to);
}

/* A task that is switched to runs under every name that it takes until the next switch. */
static void collector_note_switch(struct kbarman_collector *it, struct current_task *now, u32 id,
				  u64 timestamp)
{
	if (now->id != KBARMAN_NO_TASK)
		collector_note_task(it, now->id, now->since, timestamp);
	*now = (struct current_task) { .id = id, .since = timestamp };
}

static void collector_note_record(struct kbarman_collector *it, struct current_task *now,
				  const struct record *record)
{
	u64 timestamp = record->header.timestamp;
	u32 id = record->task_id;

	static_assert(offsetof(struct bm_protocol_sample, task_id) == 16);
	static_assert(offsetof(struct bm_protocol_task_switch, task_id) == 16);
	static_assert(offsetof(struct bm_protocol_custom_counter, task_id) == 16);
	static_assert(offsetof(struct bm_protocol_annotation, task_id) == 16);

	if (record->header.record_type == BM_RECORD_HALTING_EVENT)
		return;
	if (record->header.record_type == BM_RECORD_TASK_SWITCH)
		collector_note_switch(it, now, id, timestamp);
	collector_note_task(it, id, id == now->id ? now->since : timestamp, timestamp);
}

/* The whole blocks in the first @got bytes of the chunk, from @position; returns their length. */
static unsigned long collector_note_chunk(struct kbarman_collector *it, struct current_task *now,
					  unsigned long position, unsigned long got)
{
	unsigned long at = 0, length;

	while (at < got) {
		const struct record *record = (void *)it->chunk + at;

		length = record->length & ~BM_BLOCK_PADDING;
		/* The rest of a block need not be in the chunk. */
		if (got - at < sizeof(*record) && got - at < sizeof(record->length) + length)
			break;
		if (!(record->length & BM_BLOCK_PADDING) &&
		    length >= sizeof(*record) - sizeof(record->length)) {
			collector_enter_piece(it, position + at);
			collector_note_record(it, now, record);
		}
		at += sizeof(record->length) + length;
	}
	return at;
}

bool kbarman_collector_read_ring(struct kbarman_collector *it, const struct kbarman_ring *ring,
				 unsigned long base, unsigned int shift)
{
	struct current_task now = { .id = KBARMAN_NO_TASK };
	unsigned long position, end, got;

	overs_rewind(&it->tasks);
	overs_rewind(&it->maps);
	it->base = base;
	it->shift = shift;
	it->pass++;
	end = kbarman_ring_bounds(ring, &position);
	while (kbarman_ring_after(end, position)) {
		got = kbarman_ring_peek(ring, &position, end, it->chunk, sizeof(it->chunk));
		if (!got)	/* the switches in between are overwritten */
			now.id = KBARMAN_NO_TASK;
		position += collector_note_chunk(it, &now, position, got);
		if (!READ_ONCE(it->on))
			return false;
		cond_resched();
	}
	if (now.id != KBARMAN_NO_TASK)
		collector_note_task(it, now.id, now.since, it->now);
	return true;
}

void kbarman_amounts_add(struct kbarman_amounts *amounts, const struct kbarman_overs *overs,
			 const struct kbarman_over *over)
{
	u32 *of = amounts->of[over->payer];

	of[overs->what]++;
	of[KBARMAN_SHARE_STRINGS] += over->strings;
}

/* What the ring that was read needs. */
static void amounts_add_needs(struct kbarman_amounts *needs, struct kbarman_overs *overs)
{
	u32 i;

	for (i = 0; i < overs->count; i++) {
		if (overs->rows[i].piece == NO_PIECE)
			continue;
		overs->rows[i].needed = true;
		kbarman_amounts_add(needs, overs, &overs->rows[i]);
	}
}

static void overs_forget_needs(struct kbarman_overs *overs)
{
	u32 i;

	for (i = 0; i < overs->count; i++)
		overs->rows[i].needed = false;
}

bool kbarman_collector_read_rings(struct kbarman_collector *it)
{
	int cpu;

	overs_forget_needs(&it->tasks);
	overs_forget_needs(&it->maps);
	for_each_possible_cpu(cpu) {
		const struct kbarman_ring *ring = per_cpu_ptr(it->cpu_rings, cpu);

		memset(&it->rings[cpu], 0, sizeof(it->rings[cpu]));
		/* A CPU may be coming online. */
		if (!kbarman_ring_ready(ring))
			continue;
		it->overwrites = kbarman_ring_overwrites(ring);
		if (!kbarman_collector_read_ring(it, ring, 0, BITS_PER_LONG - 1))
			return false;
		amounts_add_needs(&it->rings[cpu], &it->tasks);
		amounts_add_needs(&it->rings[cpu], &it->maps);
	}
	return true;
}
