// SPDX-License-Identifier: GPL-2.0-only
/*
 * The rows of tasks, and of mappings of which the time is over; and which of them records still
 * refer to.
 */
#include <linux/math64.h>
#include <linux/pid.h>
#include <linux/pid_namespace.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/sort.h>
#include <linux/string.h>

#include "capture/collector.h"
#include "capture/tables.h"

#define LOOKED_AT_ONCE	32	/* rows, under the lock */

static bool id_is_free(u32 id)
{
	bool is_free;

	rcu_read_lock();
	is_free = !find_pid_ns(id, &init_pid_ns);
	rcu_read_unlock();
	return is_free;
}

/*
 * A mapping is over with its process; if another process begins under the same id; or if the process
 * has got new rows for all its mappings. A process that lives may have no row: there may be too few.
 * Under the lock.
 */
static void ended_end_map(struct kbarman_capture *capture, u32 row, u64 now)
{
	const struct bm_protocol_header_mmap_layout *map = kbarman_map_row(capture, row);
	const struct kbarman_life *life;
	s64 task;

	if (!map->task_id || map->task_id == KBARMAN_NO_TASK || capture->maps.until[row])
		return;
	task = kbarman_tables_find_task(capture, map->task_id);
	life = &capture->lives[max_t(s64, task, 0)];
	if (task < 0)
		capture->maps.until[row] = id_is_free(map->task_id) ? now : 0;
	else if (life->begun > map->timestamp)
		capture->maps.until[row] = life->begun;
	else if (life->maps_ended > map->timestamp)
		capture->maps.until[row] = life->maps_ended;
	else if (life->freed)
		capture->maps.until[row] = capture->tasks.until[task];
}

/*
 * A task that has exited may still run. It is over when its struct is freed; a storm of tasks puts
 * that off. It is over as well if it exited a second ago and its id is free: its last switch
 * was long before. Under the lock.
 */
static void ended_end_task(const struct kbarman_collector *collector, u32 row)
{
	struct kbarman_capture *capture = collector->capture;
	u64 exited = capture->facts[row].exit_timestamp;

	if (!exited || capture->tasks.until[row] || exited + collector->second > collector->now)
		return;
	if (!id_is_free(capture->facts[row].task_id))
		return;
	capture->lives[row].freed = true;
	capture->tasks.until[row] = collector->now - 1;
}

static struct kbarman_ended ended_of_map(struct kbarman_capture *capture, u32 row)
{
	const struct bm_protocol_header_mmap_layout *map = kbarman_map_row(capture, row);

	return (struct kbarman_ended) { .row = row, .id = map->task_id, .from = map->timestamp,
					.until = capture->maps.until[row],
					.payer = capture->maps.payer[row] };
}

static struct kbarman_ended ended_of_task(struct kbarman_capture *capture, u32 row)
{
	const struct bm_kbarman_task *fact = &capture->facts[row];

	return (struct kbarman_ended) { .row = row, .id = fact->task_id, .process = fact->tgid,
					.from = kbarman_task_row(capture, row)->timestamp,
					.until = capture->tasks.until[row],
					.payer = capture->tasks.payer[row] };
}

/* @string: where that of the row begins. */
static void ended_add(struct kbarman_collector *collector, struct kbarman_ended_rows *ended,
		      struct kbarman_ended row, u32 string)
{
	if (!row.until || row.until >= collector->now)
		row.until = KBARMAN_NOT_ENDED;
	if (row.until == KBARMAN_NOT_ENDED && ended->what != KBARMAN_SHARE_TASKS)
		return;
	row.strings = kbarman_strings_part(&collector->capture->strings, string);
	ended->rows[ended->count++] = row;
}

static void ended_gather_some(struct kbarman_collector *collector, u32 first, u32 *tasks, u32 *maps)
{
	struct kbarman_capture *capture = collector->capture;
	u32 row, end = first + LOOKED_AT_ONCE;
	unsigned long flags;

	raw_spin_lock_irqsave(&capture->lock, flags);
	*tasks = *kbarman_task_count(capture);
	*maps = *kbarman_map_count(capture);
	for (row = first; row < min(end, *maps); row++) {
		ended_end_map(capture, row, collector->now);
		ended_add(collector, &collector->maps, ended_of_map(capture, row),
			  capture->image_starts[row]);
	}
	for (row = first; row < min(end, *tasks); row++) {
		if (capture->facts[row].task_id == KBARMAN_NO_TASK)
			continue;
		ended_end_task(collector, row);
		ended_add(collector, &collector->tasks, ended_of_task(capture, row),
			  kbarman_task_row(capture, row)->task_name_ptr);
	}
	raw_spin_unlock_irqrestore(&capture->lock, flags);
}

static int ended_compare(const void *a, const void *b)
{
	const struct kbarman_ended *one = a, *other = b;

	cond_resched();
	if (one->id != other->id)
		return one->id < other->id ? -1 : 1;
	if (one->from != other->from)
		return one->from < other->from ? -1 : 1;
	return 0;
}

void kbarman_ended_gather(struct kbarman_collector *collector)
{
	u32 first, tasks, maps;

	collector->tasks.count = 0;
	collector->maps.count = 0;
	collector->pass = 0;
	for (first = 0, tasks = 1, maps = 0; first < max(tasks, maps); first += LOOKED_AT_ONCE) {
		ended_gather_some(collector, first, &tasks, &maps);
		cond_resched();
	}
	sort(collector->tasks.rows, collector->tasks.count, sizeof(*collector->tasks.rows),
	     ended_compare, NULL);
	sort(collector->maps.rows, collector->maps.count, sizeof(*collector->maps.rows),
	     ended_compare, NULL);
}

/* The first row of @id, or ->count. */
static u32 ended_first(struct kbarman_ended_rows *ended, u32 id)
{
	u32 low = 0, high = ended->count;

	if (ended->last < ended->count && ended->rows[ended->last].id == id)
		return ended->last;
	while (low < high) {
		u32 middle = low + (high - low) / 2;

		if (ended->rows[middle].id < id)
			low = middle + 1;
		else
			high = middle;
	}
	if (low < ended->count && ended->rows[low].id != id)
		return ended->count;
	ended->last = low;
	return low;
}

/* ---- which records refer to them ---- */

/*
 * The piece at hand has records that mean @id in [@from, @to]. A ring's records come in the order
 * of time, so a pass over a piece looks at each row once: when the first record comes that is not
 * older than the row. Returns the row behind those that are not younger than the records.
 */
static u32 ended_note(struct kbarman_collector *collector, struct kbarman_ended_rows *ended,
		      u32 id, u64 from, u64 to)
{
	u32 first = ended_first(ended, id), next;

	if (first == ended->count)
		return first;
	if (ended->rows[first].pass != collector->pass) {
		ended->rows[first].pass = collector->pass;
		ended->rows[first].next = first;
	}
	for (next = ended->rows[first].next; next < ended->count; next++) {
		struct kbarman_ended *row = &ended->rows[next];

		if (row->id != id || row->from > to + collector->slack)
			break;
		if (from <= row->until + collector->slack)
			row->piece = collector->piece;
	}
	ended->rows[first].next = next;
	return next;
}

/* The ring at hand is another one, or is read once more. */
static void ended_rewind(struct kbarman_ended_rows *ended)
{
	u32 i;

	for (i = 0; i < ended->count; i++)
		ended->rows[i].piece = NO_PIECE;
	ended->last = ended->count;
}

/* The record at @position comes next. */
static void collector_enter_piece(struct kbarman_collector *collector, unsigned long position)
{
	u32 piece = 0;

	if (!kbarman_ring_after(collector->base, position))
		piece = min((position - collector->base) >> collector->shift, LAST_PIECE - 1UL) + 1;
	if (piece != collector->piece)
		collector->pass++;
	collector->piece = piece;
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

/*
 * The mappings of a record are those of the task's process: of each process whose thread had the id
 * then, if clocks may differ. A record before all rows of its task takes the first one.
 */
static void collector_note_task(struct kbarman_collector *collector, u32 id, u64 from, u64 to)
{
	struct kbarman_ended_rows *tasks = &collector->tasks;
	u32 row = ended_note(collector, tasks, id, from, to);
	u32 first = ended_first(tasks, id), noted = KBARMAN_NO_TASK;

	if (first == tasks->count) {
		ended_note(collector, &collector->maps, id, from, to);
		return;
	}
	row = max(row, first + 1);
	do {
		row--;
		if (tasks->rows[row].process == noted)
			continue;
		noted = tasks->rows[row].process;
		ended_note(collector, &collector->maps, noted, from, to);
	} while (row > first && tasks->rows[row].from + collector->slack > from);
}

/* A task that is switched to runs under every name that it takes until the next switch. */
static void collector_note_switch(struct kbarman_collector *collector, struct current_task *now,
				  u32 id, u64 timestamp)
{
	if (now->id != KBARMAN_NO_TASK)
		collector_note_task(collector, now->id, now->since, timestamp);
	*now = (struct current_task) { .id = id, .since = timestamp };
}

static void collector_note_record(struct kbarman_collector *collector, struct current_task *now,
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
		collector_note_switch(collector, now, id, timestamp);
	collector_note_task(collector, id, id == now->id ? now->since : timestamp, timestamp);
}

/* The whole blocks in the first @got bytes of the chunk, from @position; returns their length. */
static unsigned long collector_note_chunk(struct kbarman_collector *collector,
					  struct current_task *now, unsigned long position,
					  unsigned long got)
{
	unsigned long at = 0, length;

	while (at < got) {
		const struct record *record = (void *)collector->chunk + at;

		length = record->length & ~BM_BLOCK_PADDING;
		/* The rest of a block need not be in the chunk. */
		if (got - at < sizeof(*record) && got - at < sizeof(record->length) + length)
			break;
		if (!(record->length & BM_BLOCK_PADDING) &&
		    length >= sizeof(*record) - sizeof(record->length)) {
			collector_enter_piece(collector, position + at);
			collector_note_record(collector, now, record);
		}
		at += sizeof(record->length) + length;
	}
	return at;
}

bool kbarman_collector_read_ring(struct kbarman_collector *collector,
				 const struct kbarman_ring *ring, unsigned long base,
				 unsigned int shift)
{
	struct current_task now = { .id = KBARMAN_NO_TASK };
	unsigned long position, end, got;

	ended_rewind(&collector->tasks);
	ended_rewind(&collector->maps);
	collector->base = base;
	collector->shift = shift;
	collector->pass++;
	end = kbarman_ring_bounds(ring, &position);
	while (kbarman_ring_after(end, position)) {
		got = kbarman_ring_peek(ring, &position, end, collector->chunk,
					sizeof(collector->chunk));
		if (!got)	/* the switches in between are overwritten */
			now.id = KBARMAN_NO_TASK;
		position += collector_note_chunk(collector, &now, position, got);
		if (!READ_ONCE(collector->on))
			return false;
		cond_resched();
	}
	if (now.id != KBARMAN_NO_TASK)
		collector_note_task(collector, now.id, now.since, collector->now);
	return true;
}

void kbarman_amounts_add(struct kbarman_amounts *amounts, const struct kbarman_ended_rows *ended,
			 const struct kbarman_ended *row)
{
	u32 *of = amounts->of[row->payer];

	of[ended->what]++;
	of[KBARMAN_SHARE_STRINGS] += row->strings;
}

/* What the ring that was read needs. */
static void amounts_add_needs(struct kbarman_amounts *needs, struct kbarman_ended_rows *ended)
{
	u32 i;

	for (i = 0; i < ended->count; i++) {
		if (ended->rows[i].piece == NO_PIECE)
			continue;
		ended->rows[i].needed = true;
		if (ended->rows[i].until != KBARMAN_NOT_ENDED)
			kbarman_amounts_add(needs, ended, &ended->rows[i]);
	}
}

static void ended_forget_needs(struct kbarman_ended_rows *ended)
{
	u32 i;

	for (i = 0; i < ended->count; i++)
		ended->rows[i].needed = false;
}

/* A process has a name as long as one of its threads has a record. */
static void ended_note_processes(struct kbarman_ended_rows *tasks)
{
	u32 i, leader;

	for (i = 0; i < tasks->count; i++) {
		const struct kbarman_ended *thread = &tasks->rows[i];

		cond_resched();
		if (!thread->needed || thread->process == thread->id)
			continue;
		for (leader = ended_first(tasks, thread->process);
		     leader < tasks->count && tasks->rows[leader].id == thread->process; leader++)
			if (tasks->rows[leader].from <= thread->until &&
			    thread->from <= tasks->rows[leader].until)
				tasks->rows[leader].needed = true;
	}
}

bool kbarman_collector_read_rings(struct kbarman_collector *collector)
{
	int cpu;

	ended_forget_needs(&collector->tasks);
	ended_forget_needs(&collector->maps);
	for_each_possible_cpu(cpu) {
		const struct kbarman_ring *ring = per_cpu_ptr(collector->cpu_rings, cpu);

		memset(&collector->rings[cpu], 0, sizeof(collector->rings[cpu]));
		/* A CPU may be coming online. */
		if (!kbarman_ring_ready(ring))
			continue;
		collector->overwrites = kbarman_ring_overwrites(ring);
		if (!kbarman_collector_read_ring(collector, ring, 0, BITS_PER_LONG - 1))
			return false;
		amounts_add_needs(&collector->rings[cpu], &collector->tasks);
		amounts_add_needs(&collector->rings[cpu], &collector->maps);
	}
	ended_note_processes(&collector->tasks);
	return true;
}
