// SPDX-License-Identifier: GPL-2.0-only
/* The rows whose time is over. */
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
 * A mapping is over with its task; if its task begins anew under the same id; or if the task
 * has had all its mappings told again. A task that lives may have no row: there may be too few.
 * Under the lock.
 */
static void over_end_map(struct kbarman_capture *capture, u32 row, u64 now)
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
static void over_end_task(const struct kbarman_collector *it, u32 row)
{
	struct kbarman_capture *capture = it->capture;
	u64 exited = capture->facts[row].exit_timestamp;

	if (!exited || capture->tasks.until[row] || exited + it->second > it->now)
		return;
	if (!id_is_free(capture->facts[row].task_id))
		return;
	capture->lives[row].freed = true;
	capture->tasks.until[row] = it->now - 1;
}

static struct kbarman_over over_of_map(struct kbarman_capture *capture, u32 row)
{
	const struct bm_protocol_header_mmap_layout *map = kbarman_map_row(capture, row);

	return (struct kbarman_over) { .row = row, .id = map->task_id, .from = map->timestamp,
			       .until = capture->maps.until[row],
			       .payer = capture->maps.payer[row] };
}

static struct kbarman_over over_of_task(struct kbarman_capture *capture, u32 row)
{
	const struct kbarman_task_fact *fact = &capture->facts[row];

	return (struct kbarman_over) { .row = row, .id = fact->task_id, .process = fact->tgid,
			       .from = kbarman_task_row(capture, row)->timestamp,
			       .until = capture->tasks.until[row],
			       .payer = capture->tasks.payer[row] };
}

/* @string: where that of the row begins. */
static void overs_add(struct kbarman_collector *it, struct kbarman_overs *overs,
		      struct kbarman_over over, u32 string)
{
	if (!over.until || over.until >= it->now)
		return;
	over.strings = kbarman_strings_part(&it->capture->strings, string);
	overs->rows[overs->count++] = over;
}

static void overs_gather_some(struct kbarman_collector *it, u32 first, u32 *tasks, u32 *maps)
{
	struct kbarman_capture *capture = it->capture;
	u32 row, end = first + LOOKED_AT_ONCE;
	unsigned long flags;

	raw_spin_lock_irqsave(&capture->lock, flags);
	*tasks = *kbarman_task_count(capture);
	*maps = *kbarman_map_count(capture);
	for (row = first; row < min(end, *maps); row++) {
		over_end_map(capture, row, it->now);
		overs_add(it, &it->maps, over_of_map(capture, row), capture->image_starts[row]);
	}
	for (row = first; row < min(end, *tasks); row++) {
		over_end_task(it, row);
		overs_add(it, &it->tasks, over_of_task(capture, row),
			  kbarman_task_row(capture, row)->task_name_ptr);
	}
	raw_spin_unlock_irqrestore(&capture->lock, flags);
}

static int over_compare(const void *a, const void *b)
{
	const struct kbarman_over *one = a, *other = b;

	cond_resched();
	if (one->id != other->id)
		return one->id < other->id ? -1 : 1;
	if (one->from != other->from)
		return one->from < other->from ? -1 : 1;
	return 0;
}

void kbarman_overs_gather(struct kbarman_collector *it)
{
	u32 first, tasks, maps;

	it->tasks.count = 0;
	it->maps.count = 0;
	it->pass = 0;
	for (first = 0, tasks = 1, maps = 0; first < max(tasks, maps); first += LOOKED_AT_ONCE) {
		overs_gather_some(it, first, &tasks, &maps);
		cond_resched();
	}
	sort(it->tasks.rows, it->tasks.count, sizeof(*it->tasks.rows), over_compare, NULL);
	sort(it->maps.rows, it->maps.count, sizeof(*it->maps.rows), over_compare, NULL);
}

u32 kbarman_overs_first(struct kbarman_overs *overs, u32 id)
{
	u32 low = 0, high = overs->count;

	if (overs->last < overs->count && overs->rows[overs->last].id == id)
		return overs->last;
	while (low < high) {
		u32 middle = low + (high - low) / 2;

		if (overs->rows[middle].id < id)
			low = middle + 1;
		else
			high = middle;
	}
	if (low < overs->count && overs->rows[low].id != id)
		return overs->count;
	overs->last = low;
	return low;
}
