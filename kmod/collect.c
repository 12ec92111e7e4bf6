// SPDX-License-Identifier: GPL-2.0-only
#include <linux/irq_work.h>
#include <linux/jiffies.h>
#include <linux/overflow.h>
#include <linux/pid.h>
#include <linux/pid_namespace.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/sort.h>
#include <linux/vmalloc.h>
#include <linux/workqueue.h>

#include "clock.h"
#include "collect.h"
#include "header.h"
#include "session.h"
#include "tables.h"

#define ROWS_AT_ONCE	16	/* are looked at under the lock */
#define CHUNK		4096	/* bytes of a ring that are copied at once */
#define SLACK_HZ	1000	/* clocks of two CPUs differ by less than a second / this */
#define REST		4	/* times as long as it worked in vain: until the next look */

/* A row whose time is over, and what is known of it. */
struct over {
	u64 from, until;
	u32 id;
	u32 process;		/* its thread group; 0 = that has no rows here */
	u32 row;
	u32 next;	/* of the first one of an id: the first that the ring at hand has not
			 * come to */
	bool needed;
};

struct overs {
	struct over *rows;	/* [size], sorted by id and from */
	u32 count;
	u32 last;		/* the first one of the id that was looked up last */
};

struct kbarman_collector {
	struct kbarman_capture *capture;
	struct irq_work kick;
	struct delayed_work work;
	bool on;		/* between start() and stop() */
	unsigned long rested;	/* jiffies: not to work before that */
	u64 now;		/* of the look: what is over is so since before then */
	u64 slack, second;	/* ticks */
	struct overs tasks, maps;
	u64 chunk[CHUNK / sizeof(u64)];
};

/* ---- what is over ---- */

/* Which mappings are over: the task's end them, or have been told to. Under the lock. */
static void end_map(struct kbarman_capture *capture, u32 row, u64 now)
{
	const struct bm_protocol_header_mmap_layout *map = kbarman_map_row(capture, row);
	const struct kbarman_life *life;
	s64 task;

	if (!map->task_id || map->task_id == KBARMAN_NO_TASK || capture->maps.until[row])
		return;
	task = kbarman_tables_find_task(capture, map->task_id);
	life = &capture->lives[max_t(s64, task, 0)];
	if (task < 0)
		capture->maps.until[row] = now;
	else if (life->begun > map->timestamp)
		capture->maps.until[row] = life->begun;
	else if (life->maps_ended > map->timestamp)
		capture->maps.until[row] = life->maps_ended;
	else if (life->freed)
		capture->maps.until[row] = capture->tasks.until[task];
}

/*
 * A task that has ended is gone for good when its struct is freed, which a storm of tasks puts
 * off; or a second after its id was, which is long after its last switch. Under the lock.
 */
static void end_task(const struct kbarman_collector *it, u32 row)
{
	struct kbarman_capture *capture = it->capture;
	u64 exited = capture->facts[row].exit_timestamp;

	if (!exited || capture->tasks.until[row] || exited + it->second > it->now)
		return;
	rcu_read_lock();
	if (!find_pid_ns(capture->facts[row].task_id, &init_pid_ns)) {
		capture->lives[row].freed = true;
		capture->tasks.until[row] = it->now - 1;
	}
	rcu_read_unlock();
}

static void add_over(struct overs *overs, const struct over *over, u64 before)
{
	if (over->until && over->until < before)
		overs->rows[overs->count++] = *over;
}

static struct over map_over(struct kbarman_capture *capture, u32 row)
{
	const struct bm_protocol_header_mmap_layout *map = kbarman_map_row(capture, row);

	return (struct over) { .row = row, .id = map->task_id, .from = map->timestamp,
			       .until = capture->maps.until[row] };
}

static struct over task_over(struct kbarman_capture *capture, u32 row)
{
	const struct kbarman_task_fact *fact = &capture->facts[row];

	return (struct over) { .row = row, .id = fact->task_id, .process = fact->tgid,
			       .from = kbarman_task_row(capture, row)->timestamp,
			       .until = capture->tasks.until[row] };
}

static void gather_some(struct kbarman_collector *it, u32 first, u32 *tasks, u32 *maps)
{
	struct kbarman_capture *capture = it->capture;
	u32 row, end = first + ROWS_AT_ONCE;
	unsigned long flags;
	struct over over;

	raw_spin_lock_irqsave(&capture->lock, flags);
	*tasks = *kbarman_task_count(capture);
	*maps = *kbarman_map_count(capture);
	for (row = first; row < min(end, *maps); row++) {
		end_map(capture, row, it->now);
		over = map_over(capture, row);
		add_over(&it->maps, &over, it->now);
	}
	for (row = first; row < min(end, *tasks); row++) {
		end_task(it, row);
		over = task_over(capture, row);
		add_over(&it->tasks, &over, it->now);
	}
	raw_spin_unlock_irqrestore(&capture->lock, flags);
}

static int compare(const void *a, const void *b)
{
	const struct over *one = a, *other = b;

	cond_resched();
	if (one->id != other->id)
		return one->id < other->id ? -1 : 1;
	if (one->from != other->from)
		return one->from < other->from ? -1 : 1;
	return 0;
}

static void gather(struct kbarman_collector *it)
{
	u32 first, tasks, maps;

	it->tasks.count = 0;
	it->maps.count = 0;
	for (first = 0, tasks = 1, maps = 0; first < max(tasks, maps); first += ROWS_AT_ONCE) {
		gather_some(it, first, &tasks, &maps);
		cond_resched();
	}
	sort(it->tasks.rows, it->tasks.count, sizeof(*it->tasks.rows), compare, NULL);
	sort(it->maps.rows, it->maps.count, sizeof(*it->maps.rows), compare, NULL);
}

/* ---- which of them are needed ---- */

/* The first one of @id, or ->count. */
static u32 first_of(struct overs *overs, u32 id)
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

/*
 * Records mean @id in [@from, @to]. A ring's records come in the order of time, so for each
 * ring a row is looked at once: by the first record that is not older than the row.
 */
static void note(struct overs *overs, u32 id, u64 from, u64 to, u64 slack)
{
	u32 first = first_of(overs, id), next;

	if (first == overs->count)
		return;
	for (next = overs->rows[first].next; next < overs->count; next++) {
		struct over *over = &overs->rows[next];

		if (over->id != id || over->from > to + slack)
			break;
		if (from <= over->until + slack)
			over->needed = true;
	}
	overs->rows[first].next = next;
}

/* The next ring begins. */
static void rewind_overs(struct overs *overs)
{
	u32 i;

	for (i = 0; i < overs->count; i++)
		overs->rows[i].next = i;
	overs->last = overs->count;
}

/* What every record of a task begins with: struct bm_protocol_sample, _task_switch, … */
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

static void note_task(struct kbarman_collector *it, u32 id, u64 from, u64 to)
{
	note(&it->tasks, id, from, to, it->slack);
	note(&it->maps, id, from, to, it->slack);
}

/* A task that is switched to runs under every name that it takes until the next switch. */
static void note_switch(struct kbarman_collector *it, struct current_task *now, u32 id, u64 timestamp)
{
	if (now->id != KBARMAN_NO_TASK)
		note_task(it, now->id, now->since, timestamp);
	*now = (struct current_task) { .id = id, .since = timestamp };
}

static void note_record(struct kbarman_collector *it, struct current_task *now,
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
		note_switch(it, now, id, timestamp);
	note_task(it, id, id == now->id ? now->since : timestamp, timestamp);
}

/* The whole blocks in the first @got bytes of the chunk; returns where they end. */
static unsigned long note_chunk(struct kbarman_collector *it, struct current_task *now,
				unsigned long got)
{
	unsigned long at = 0, length;

	while (at < got) {
		const struct record *record = (void *)it->chunk + at;

		length = record->length & ~BM_BLOCK_PADDING;
		/* What is not needed of a block need not be there. */
		if (got - at < sizeof(*record) && got - at < sizeof(record->length) + length)
			break;
		if (!(record->length & BM_BLOCK_PADDING) &&
		    length >= sizeof(*record) - sizeof(record->length))
			note_record(it, now, record);
		at += sizeof(record->length) + length;
	}
	return at;
}

/* False: stop() wants the worker to end. */
static bool read_ring(struct kbarman_collector *it, const struct kbarman_ring *ring)
{
	struct current_task now = { .id = KBARMAN_NO_TASK };
	unsigned long position, end, got;

	rewind_overs(&it->tasks);
	rewind_overs(&it->maps);
	end = kbarman_ring_bounds(ring, &position);
	while (kbarman_ring_after(end, position)) {
		got = kbarman_ring_peek(ring, &position, end, it->chunk, sizeof(it->chunk));
		if (!got)	/* whoever was switched to meanwhile is not known */
			now.id = KBARMAN_NO_TASK;
		position += note_chunk(it, &now, got);
		if (!READ_ONCE(it->on))
			return false;
		cond_resched();
	}
	if (now.id != KBARMAN_NO_TASK)
		note_task(it, now.id, now.since, it->now);
	return true;
}

static bool read_rings(struct kbarman_collector *it)
{
	int cpu;

	for_each_possible_cpu(cpu) {
		const struct kbarman_ring *ring = per_cpu_ptr(&kbarman_rings, cpu);

		/* A CPU may be coming online. */
		if (kbarman_ring_ready(ring) && !read_ring(it, ring))
			return false;
	}
	return true;
}

/* A process has a name as long as one of its threads has a record. */
static void note_processes(struct overs *tasks)
{
	u32 i, leader;

	for (i = 0; i < tasks->count; i++) {
		const struct over *thread = &tasks->rows[i];

		cond_resched();
		if (!thread->needed || thread->process == thread->id)
			continue;
		for (leader = first_of(tasks, thread->process);
		     leader < tasks->count && tasks->rows[leader].id == thread->process; leader++)
			if (tasks->rows[leader].from <= thread->until &&
			    thread->from <= tasks->rows[leader].until)
				tasks->rows[leader].needed = true;
	}
}

/* ---- the others are emptied ---- */

/* Returns how many. */
static u32 drop(struct kbarman_collector *it, struct overs *overs,
		void (*drop_row)(struct kbarman_capture *capture, u32 row))
{
	struct kbarman_capture *capture = it->capture;
	u32 first, i, dropped = 0;

	for (first = 0; first < overs->count && READ_ONCE(it->on); first += ROWS_AT_ONCE) {
		unsigned long flags;
		bool any = false;

		raw_spin_lock_irqsave(&capture->lock, flags);
		for (i = first; i < min(first + ROWS_AT_ONCE, overs->count); i++) {
			if (overs->rows[i].needed)
				continue;
			/* Before the first: who reads copies again. */
			if (!any)
				capture->generation++;
			any = true;
			drop_row(capture, overs->rows[i].row);
			dropped++;
		}
		raw_spin_unlock_irqrestore(&capture->lock, flags);
		cond_resched();
	}
	return dropped;
}

/* Whether it was worth it: a sixteenth of a table is empty again. */
static bool collect(struct kbarman_collector *it)
{
	struct kbarman_capture *capture = it->capture;
	const struct kbarman_layout *layout = &capture->layout;
	unsigned long flags;
	u32 maps, tasks;

	/* A row that ends now may be that of a record which another CPU is about to write. */
	it->now = kbarman_clock() - it->slack;
	gather(it);
	if (!read_rings(it))
		return false;
	note_processes(&it->tasks);
	maps = drop(it, &it->maps, kbarman_tables_drop_map);
	tasks = drop(it, &it->tasks, kbarman_tables_drop_task);
	raw_spin_lock_irqsave(&capture->lock, flags);
	kbarman_shares_looked(&capture->shares);
	raw_spin_unlock_irqrestore(&capture->lock, flags);
	return maps >= layout->max_maps / 16 || tasks >= layout->max_tasks / 16;
}

static void work(struct work_struct *work)
{
	struct kbarman_collector *it = container_of(work, struct kbarman_collector, work.work);
	unsigned long begun = jiffies;

	if (!collect(it))
		WRITE_ONCE(it->rested, jiffies + REST * (jiffies - begun));
}

/* Context: hard interrupt, a thread on PREEMPT_RT. */
static void kick(struct irq_work *work)
{
	struct kbarman_collector *it = container_of(work, struct kbarman_collector, kick);
	unsigned long rested = READ_ONCE(it->rested);

	if (READ_ONCE(it->on))
		queue_delayed_work(system_unbound_wq, &it->work,
				   time_before(jiffies, rested) ? rested - jiffies : 0);
}

void kbarman_collect_soon(struct kbarman_capture *capture)
{
	if (capture->collector && READ_ONCE(capture->collector->on))
		irq_work_queue(&capture->collector->kick);
}

/* ---- its life ---- */

u64 kbarman_collect_memory(const struct kbarman_layout *layout)
{
	return sizeof(struct kbarman_collector) +
	       ((u64)layout->max_tasks + layout->max_maps) * sizeof(struct over);
}

bool kbarman_collect_create(struct kbarman_capture *capture)
{
	struct kbarman_collector *it = kzalloc(sizeof(*it), GFP_KERNEL);

	if (!it)
		return false;
	capture->collector = it;
	it->capture = capture;
	init_irq_work(&it->kick, kick);
	INIT_DELAYED_WORK(&it->work, work);
	it->tasks.rows = vzalloc(array_size(capture->layout.max_tasks, sizeof(struct over)));
	it->maps.rows = vzalloc(array_size(capture->layout.max_maps, sizeof(struct over)));
	return it->tasks.rows && it->maps.rows;
}

void kbarman_collect_free(struct kbarman_capture *capture)
{
	if (!capture->collector)
		return;
	vfree(capture->collector->maps.rows);
	vfree(capture->collector->tasks.rows);
	kfree(capture->collector);
}

void kbarman_collect_start(struct kbarman_capture *capture)
{
	if (!capture->collector)
		return;
	capture->collector->rested = jiffies;
	capture->collector->second = kbarman_clock_hz();	/* of the clock that start() chose */
	capture->collector->slack = div_u64(kbarman_clock_hz(), SLACK_HZ);
	WRITE_ONCE(capture->collector->on, true);
}

void kbarman_collect_stop(struct kbarman_capture *capture)
{
	if (!capture->collector)
		return;
	WRITE_ONCE(capture->collector->on, false);
	irq_work_sync(&capture->collector->kick);
	cancel_delayed_work_sync(&capture->collector->work);
}
