// SPDX-License-Identifier: GPL-2.0-only
/* The rows of tasks, and of mappings of which the time is over. */
#include <linux/math64.h>
#include <linux/pid.h>
#include <linux/pid_namespace.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/sort.h>

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

u32 kbarman_ended_first(struct kbarman_ended_rows *ended, u32 id)
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
