// SPDX-License-Identifier: GPL-2.0-only
#include <linux/cpu.h>
#include <linux/irq_work.h>
#include <linux/jiffies.h>
#include <linux/log2.h>
#include <linux/math64.h>
#include <linux/overflow.h>
#include <linux/pid.h>
#include <linux/pid_namespace.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/smp.h>
#include <linux/sort.h>
#include <linux/vmalloc.h>
#include <linux/workqueue.h>

#include "clock.h"
#include "collect.h"
#include "compat/workqueue.h"
#include "header.h"
#include "session.h"
#include "tables.h"

/* Under the lock: */
#define LOOKED_AT_ONCE	32	/* rows */
#define WINDOW		64	/* rows, of which at most these are emptied: */
#define EMPTIED_AT_ONCE	4	/* rows, and at most */
#define FREED_AT_ONCE	32	/* units of strings, and one string more */

#define CHUNK		4096	/* bytes of a ring that are copied at once */
#define SLACK_HZ	1000	/* clocks of two CPUs differ by less than a second / this */
#define REST		4	/* a look in vain: a rest of this many times its length follows */

/*
 * A ring is looked at in pieces of one size. Piece 0 is all that is in front of the first of
 * them, the last piece is all that is behind the one before it.
 */
#define PIECES_SHIFT	8
#define LAST_PIECE	((1U << PIECES_SHIFT) + 1)
#define NO_PIECE	(LAST_PIECE + 1)

#define NR_SHARED	3	/* of enum kbarman_resource: tasks, maps, strings */

/* A row whose time is over. */
struct over {
	u64 from, until;
	u32 id;
	u32 process;		/* the task's thread group; 0 in a row of a mapping */
	u32 row;
	u32 strings;		/* bytes: the row's part of its string */
	/* In the first row of an id: where note() goes on, if it has come to this id in this
	 * pass over a piece of a ring. */
	u32 next, pass;
	u16 piece;		/* of the ring at hand: the last one that needs this row */
	u8 payer;
	bool needed;		/* by any ring */
};

struct overs {
	enum kbarman_resource what;
	struct over *rows;	/* [size], sorted by id and from */
	u32 count;
	u32 last;		/* the first row of the id that was looked up last */
};

/* A number for each payer and resource: rows, and bytes of strings. */
struct amounts {
	u32 of[KBARMAN_PAYERS][NR_SHARED];
};

struct kbarman_collector {
	struct kbarman_capture *capture;
	struct irq_work kick;
	struct delayed_work work;
	bool on;		/* between start() and stop() */
	unsigned long rested;	/* jiffies: not to work before that */
	u64 now;		/* the time of the look: a row is over if it was before */
	u64 slack, second;	/* ticks */
	struct overs tasks, maps;

	struct amounts *rings;	/* [nr_cpu_ids]: what each ring needs of the rows that are over */
	struct amounts over;	/* what all rows take that are over */
	struct amounts needed;	/* what those of them take that any ring needs */
	struct amounts levels;	/* a ring that needs more than that gives way */

	/* The ring at hand. */
	unsigned long base;	/* where piece 1 begins */
	unsigned int shift;	/* of the size of a piece */
	u32 piece;		/* the reader is in it */
	u32 pass;
	u32 by_piece[LAST_PIECE + 1];
	u64 chunk[CHUNK / sizeof(u64)];
};

/* ---- what is over ---- */

/*
 * A mapping is over with its task; if its task begins anew under the same id; or if the task
 * has had all its mappings told again. Under the lock.
 */
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
 * A task that has exited may still run. It is over when its struct is freed; a storm of tasks puts
 * that off. It is over as well if it exited a second ago and its id is free: its last switch
 * was long before. Under the lock.
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

static struct over map_over(struct kbarman_capture *capture, u32 row)
{
	const struct bm_protocol_header_mmap_layout *map = kbarman_map_row(capture, row);

	return (struct over) { .row = row, .id = map->task_id, .from = map->timestamp,
			       .until = capture->maps.until[row],
			       .payer = capture->maps.payer[row] };
}

static struct over task_over(struct kbarman_capture *capture, u32 row)
{
	const struct kbarman_task_fact *fact = &capture->facts[row];

	return (struct over) { .row = row, .id = fact->task_id, .process = fact->tgid,
			       .from = kbarman_task_row(capture, row)->timestamp,
			       .until = capture->tasks.until[row],
			       .payer = capture->tasks.payer[row] };
}

/* @string: where that of the row begins. */
static void add_over(struct kbarman_collector *it, struct overs *overs, struct over over,
		     u32 string)
{
	if (!over.until || over.until >= it->now)
		return;
	over.strings = kbarman_strings_part(&it->capture->strings, string);
	overs->rows[overs->count++] = over;
}

static void gather_some(struct kbarman_collector *it, u32 first, u32 *tasks, u32 *maps)
{
	struct kbarman_capture *capture = it->capture;
	u32 row, end = first + LOOKED_AT_ONCE;
	unsigned long flags;

	raw_spin_lock_irqsave(&capture->lock, flags);
	*tasks = *kbarman_task_count(capture);
	*maps = *kbarman_map_count(capture);
	for (row = first; row < min(end, *maps); row++) {
		end_map(capture, row, it->now);
		add_over(it, &it->maps, map_over(capture, row), capture->image_starts[row]);
	}
	for (row = first; row < min(end, *tasks); row++) {
		end_task(it, row);
		add_over(it, &it->tasks, task_over(capture, row),
			 kbarman_task_row(capture, row)->task_name_ptr);
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
	it->pass = 0;
	for (first = 0, tasks = 1, maps = 0; first < max(tasks, maps); first += LOOKED_AT_ONCE) {
		gather_some(it, first, &tasks, &maps);
		cond_resched();
	}
	sort(it->tasks.rows, it->tasks.count, sizeof(*it->tasks.rows), compare, NULL);
	sort(it->maps.rows, it->maps.count, sizeof(*it->maps.rows), compare, NULL);
}

/* ---- which of them are needed ---- */

/* The first row of @id, or ->count. */
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
 * The piece at hand has records that mean @id in [@from, @to]. A ring's records come in the order
 * of time, so a pass over a piece looks at each row once: when the first record comes that is not
 * older than the row.
 */
static void note(struct kbarman_collector *it, struct overs *overs, u32 id, u64 from, u64 to)
{
	u32 first = first_of(overs, id), next;

	if (first == overs->count)
		return;
	if (overs->rows[first].pass != it->pass) {
		overs->rows[first].pass = it->pass;
		overs->rows[first].next = first;
	}
	for (next = overs->rows[first].next; next < overs->count; next++) {
		struct over *over = &overs->rows[next];

		if (over->id != id || over->from > to + it->slack)
			break;
		if (from <= over->until + it->slack)
			over->piece = it->piece;
	}
	overs->rows[first].next = next;
}

/* The ring at hand is another one, or is read once more. */
static void rewind_overs(struct overs *overs)
{
	u32 i;

	for (i = 0; i < overs->count; i++)
		overs->rows[i].piece = NO_PIECE;
	overs->last = overs->count;
}

/* The record at @position comes next. */
static void enter_piece(struct kbarman_collector *it, unsigned long position)
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

static void note_task(struct kbarman_collector *it, u32 id, u64 from, u64 to)
{
	note(it, &it->tasks, id, from, to);
	note(it, &it->maps, id, from, to);
}

/* A task that is switched to runs under every name that it takes until the next switch. */
static void note_switch(struct kbarman_collector *it, struct current_task *now, u32 id,
			u64 timestamp)
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

/* The whole blocks in the first @got bytes of the chunk, from @position; returns their length. */
static unsigned long note_chunk(struct kbarman_collector *it, struct current_task *now,
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
			enter_piece(it, position + at);
			note_record(it, now, record);
		}
		at += sizeof(record->length) + length;
	}
	return at;
}

/*
 * Find for each row the last piece of the ring that needs it. False: stop() wants the worker to
 * end.
 */
static bool read_ring(struct kbarman_collector *it, const struct kbarman_ring *ring,
		      unsigned long base, unsigned int shift)
{
	struct current_task now = { .id = KBARMAN_NO_TASK };
	unsigned long position, end, got;

	rewind_overs(&it->tasks);
	rewind_overs(&it->maps);
	it->base = base;
	it->shift = shift;
	it->pass++;
	end = kbarman_ring_bounds(ring, &position);
	while (kbarman_ring_after(end, position)) {
		got = kbarman_ring_peek(ring, &position, end, it->chunk, sizeof(it->chunk));
		if (!got)	/* the switches in between are overwritten */
			now.id = KBARMAN_NO_TASK;
		position += note_chunk(it, &now, position, got);
		if (!READ_ONCE(it->on))
			return false;
		cond_resched();
	}
	if (now.id != KBARMAN_NO_TASK)
		note_task(it, now.id, now.since, it->now);
	return true;
}

static void add_amount(struct amounts *amounts, const struct overs *overs, const struct over *over)
{
	u32 *of = amounts->of[over->payer];

	of[overs->what]++;
	of[KBARMAN_SHARE_STRINGS] += over->strings;
}

/* What the ring that was read needs. */
static void add_needs(struct amounts *needs, struct overs *overs)
{
	u32 i;

	for (i = 0; i < overs->count; i++) {
		if (overs->rows[i].piece == NO_PIECE)
			continue;
		overs->rows[i].needed = true;
		add_amount(needs, overs, &overs->rows[i]);
	}
}

static void nothing_needed(struct overs *overs)
{
	u32 i;

	for (i = 0; i < overs->count; i++)
		overs->rows[i].needed = false;
}

static bool read_rings(struct kbarman_collector *it)
{
	int cpu;

	nothing_needed(&it->tasks);
	nothing_needed(&it->maps);
	for_each_possible_cpu(cpu) {
		const struct kbarman_ring *ring = per_cpu_ptr(&kbarman_rings, cpu);

		memset(&it->rings[cpu], 0, sizeof(it->rings[cpu]));
		/* A CPU may be coming online. */
		if (!kbarman_ring_ready(ring))
			continue;
		if (!read_ring(it, ring, 0, BITS_PER_LONG - 1))
			return false;
		add_needs(&it->rings[cpu], &it->tasks);
		add_needs(&it->rings[cpu], &it->maps);
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

/* ---- rings give way ---- */

static void add_all(struct kbarman_collector *it, const struct overs *overs)
{
	u32 i;

	for (i = 0; i < overs->count; i++) {
		add_amount(&it->over, overs, &overs->rows[i]);
		if (overs->rows[i].needed)
			add_amount(&it->needed, overs, &overs->rows[i]);
	}
}

/* What @payer may have of @what beside the rows that are not over. */
static u64 room_for(const struct kbarman_collector *it, u8 payer, enum kbarman_resource what)
{
	const struct kbarman_shares *shares = &it->capture->shares;
	u64 unit = what == KBARMAN_SHARE_STRINGS ? KBARMAN_STRING_UNIT : 1;
	u64 room = kbarman_shares_limit(shares, payer, what) * unit;
	u64 taken = shares->payers[payer].used[what] * unit;
	u64 over = it->over.of[payer][what];

	taken -= min(taken, over);
	return room - min(room, taken);
}

/*
 * How much each ring may keep of what the rows of @payer take. What is left empty is for tasks to
 * come; so if rings need more than half of the room, they give way until they need 3/8 of it.
 *
 * Several rings may need a row. @shared: as many of the rows that are kept as of those that there
 * are now. That is a guess; without it there is enough room whatever rings share.
 */
static u32 find_level(const struct kbarman_collector *it, u8 payer, enum kbarman_resource what,
		      u64 room, bool shared)
{
	u32 needed = it->needed.of[payer][what];
	u64 sum = 0, budget;
	int cpu;

	if (needed <= room / 2)
		return ~0U;
	for_each_possible_cpu(cpu)
		sum += it->rings[cpu].of[payer][what];
	/* The rows of processes are needed by no ring, but go with those of threads. */
	if (!shared)
		sum = min_t(u64, sum, needed);
	budget = mul_u64_u32_div(sum, room * 3 / 8, needed);
	return kbarman_shares_level(&it->rings[0].of[payer][what],
				    sizeof(struct amounts) / sizeof(u32), nr_cpu_ids, budget);
}

/* False: no ring needs too much. */
static bool find_levels(struct kbarman_collector *it, bool shared)
{
	struct kbarman_capture *capture = it->capture;
	u64 room[NR_SHARED];
	unsigned long flags;
	bool any = false;
	int payer, what;

	memset(&it->over, 0, sizeof(it->over));
	memset(&it->needed, 0, sizeof(it->needed));
	add_all(it, &it->tasks);
	add_all(it, &it->maps);
	for (payer = 0; payer < KBARMAN_PAYERS; payer++) {
		raw_spin_lock_irqsave(&capture->lock, flags);
		for (what = 0; what < NR_SHARED; what++)
			room[what] = room_for(it, payer, what);
		raw_spin_unlock_irqrestore(&capture->lock, flags);
		for (what = 0; what < NR_SHARED; what++) {
			it->levels.of[payer][what] = find_level(it, payer, what, room[what],
								shared);
			any = any || it->levels.of[payer][what] != ~0U;
		}
		cond_resched();
	}
	return any;
}

static void add_pieces(struct kbarman_collector *it, const struct overs *overs, u8 payer,
		       enum kbarman_resource what)
{
	u32 i;

	if (what != overs->what && what != KBARMAN_SHARE_STRINGS)
		return;
	for (i = 0; i < overs->count; i++) {
		const struct over *over = &overs->rows[i];

		if (over->payer == payer && over->piece != NO_PIECE)
			it->by_piece[over->piece] += what == overs->what ? 1 : over->strings;
	}
}

/* The first piece that may stay: this one and those behind it need no more than the level. */
static u32 first_to_stay(struct kbarman_collector *it, u8 payer, enum kbarman_resource what)
{
	u32 piece = LAST_PIECE + 1, sum = 0;

	memset(it->by_piece, 0, sizeof(it->by_piece));
	add_pieces(it, &it->tasks, payer, what);
	add_pieces(it, &it->maps, payer, what);
	while (piece && sum + it->by_piece[piece - 1] <= it->levels.of[payer][what]) {
		piece--;
		sum += it->by_piece[piece];
	}
	return piece;
}

static bool is_above_level(const struct kbarman_collector *it, int cpu, u8 payer,
			   enum kbarman_resource what)
{
	return it->rings[cpu].of[payer][what] > it->levels.of[payer][what];
}

/* The same for all that @cpu's ring, which was read, needs too much of; 0: it gives no way. */
static u32 first_to_stay_of(struct kbarman_collector *it, int cpu)
{
	u32 piece = 0;
	int payer, what;

	for (payer = 0; payer < KBARMAN_PAYERS; payer++)
		for (what = 0; what < NR_SHARED; what++)
			if (is_above_level(it, cpu, payer, what))
				piece = max(piece, first_to_stay(it, payer, what));
	return piece;
}

static bool needs_too_much(const struct kbarman_collector *it, int cpu)
{
	int payer, what;

	for (payer = 0; payer < KBARMAN_PAYERS; payer++)
		for (what = 0; what < NR_SHARED; what++)
			if (is_above_level(it, cpu, payer, what))
				return true;
	return false;
}

/*
 * Find in @position from where on the ring may stay: the start of one of its pages. Of a large
 * ring a piece has many pages, so the piece that stays in part is looked at in pieces of its own.
 * False: stop() wants the worker to end.
 */
static bool find_place(struct kbarman_collector *it, int cpu, unsigned long *position)
{
	const struct kbarman_ring *ring = per_cpu_ptr(&kbarman_rings, cpu);
	unsigned int shift = max_t(int, ilog2(kbarman_ring_size(ring)) - PIECES_SHIFT,
				   KBARMAN_RING_PAGE_SHIFT);
	unsigned long base;
	u32 piece;

	kbarman_ring_bounds(ring, &base);
	base = ALIGN_DOWN(base, KBARMAN_RING_PAGE);
	for (;;) {
		if (!read_ring(it, ring, base, shift))
			return false;
		piece = first_to_stay_of(it, cpu);
		if (shift == KBARMAN_RING_PAGE_SHIFT || piece < 2)
			break;
		base += (unsigned long)(piece - 2) << shift;
		shift = max_t(int, shift - PIECES_SHIFT, KBARMAN_RING_PAGE_SHIFT);
	}
	*position = piece ? base + ((unsigned long)(piece - 1) << shift) : base;
	return true;
}

struct place {
	struct kbarman_ring *ring;
	unsigned long position;
};

static void drop_records(void *info)
{
	const struct place *place = info;

	kbarman_ring_drop(place->ring, place->position);
}

/* Interrupts @cpu for a moment. If it is offline it stays so meanwhile, and has no writer. */
static void drop_records_of(int cpu, unsigned long position)
{
	struct place place = { .ring = per_cpu_ptr(&kbarman_rings, cpu), .position = position };

	cpus_read_lock();
	if (cpu_online(cpu))
		smp_call_function_single(cpu, drop_records, &place, true);
	else
		drop_records(&place);
	cpus_read_unlock();
}

/* False: stop() wants the worker to end. */
static bool give_way(struct kbarman_collector *it)
{
	unsigned long position;
	int cpu;

	for_each_possible_cpu(cpu) {
		if (!needs_too_much(it, cpu))
			continue;
		if (!find_place(it, cpu, &position))
			return false;
		drop_records_of(cpu, position);
	}
	return true;
}

/*
 * Find the rows that are needed. If they are too many, rings give way, and are read again. The
 * first time what rings share is a guess, the second time it is not. False: stop() wants the
 * worker to end.
 */
static bool find_needed(struct kbarman_collector *it)
{
	int round;

	for (round = 0;; round++) {
		if (!read_rings(it))
			return false;
		note_processes(&it->tasks);
		if (round == 2 || !find_levels(it, !round))
			return true;
		if (!give_way(it))
			return false;
	}
}

/* ---- the others are emptied ---- */

/* Of the rows from @first on, a few. Returns where it came to. */
static u32 empty_some(struct kbarman_collector *it, struct overs *overs, u32 first,
		      u32 (*drop_row)(struct kbarman_capture *capture, u32 row), u32 *emptied)
{
	struct kbarman_capture *capture = it->capture;
	u32 i, end = min(first + WINDOW, overs->count), rows = 0, units = 0;
	unsigned long flags;

	raw_spin_lock_irqsave(&capture->lock, flags);
	for (i = first; i < end && rows < EMPTIED_AT_ONCE && units < FREED_AT_ONCE; i++) {
		if (overs->rows[i].needed)
			continue;
		/* Before the first row goes: a reader then copies again. */
		if (!rows++)
			capture->generation++;
		units += drop_row(capture, overs->rows[i].row);
	}
	raw_spin_unlock_irqrestore(&capture->lock, flags);
	*emptied += rows;
	return i;
}

/* Returns how many. */
static u32 empty(struct kbarman_collector *it, struct overs *overs,
		 u32 (*drop_row)(struct kbarman_capture *capture, u32 row))
{
	u32 at = 0, emptied = 0;

	while (at < overs->count && READ_ONCE(it->on)) {
		at = empty_some(it, overs, at, drop_row, &emptied);
		cond_resched();
	}
	return emptied;
}

/* True: it was worth it, a sixteenth of a table is empty again. */
static bool collect(struct kbarman_collector *it)
{
	struct kbarman_capture *capture = it->capture;
	const struct kbarman_layout *layout = &capture->layout;
	unsigned long flags;
	u32 maps, tasks;

	/* Another CPU may be about to write a record that needs a row which ends now. */
	it->now = kbarman_clock() - it->slack;
	gather(it);
	if (!find_needed(it))
		return false;
	maps = empty(it, &it->maps, kbarman_tables_drop_map);
	tasks = empty(it, &it->tasks, kbarman_tables_drop_task);
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
		queue_delayed_work(kbarman_unbound_wq, &it->work,
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
	return sizeof(struct kbarman_collector) + nr_cpu_ids * sizeof(struct amounts) +
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
	it->tasks.what = KBARMAN_SHARE_TASKS;
	it->maps.what = KBARMAN_SHARE_MAPS;
	it->rings = vzalloc(array_size(nr_cpu_ids, sizeof(struct amounts)));
	it->tasks.rows = vzalloc(array_size(capture->layout.max_tasks, sizeof(struct over)));
	it->maps.rows = vzalloc(array_size(capture->layout.max_maps, sizeof(struct over)));
	return it->rings && it->tasks.rows && it->maps.rows;
}

void kbarman_collect_free(struct kbarman_capture *capture)
{
	if (!capture->collector)
		return;
	vfree(capture->collector->maps.rows);
	vfree(capture->collector->tasks.rows);
	vfree(capture->collector->rings);
	kfree(capture->collector);
}

void kbarman_collect_start(struct kbarman_capture *capture)
{
	if (!capture->collector)
		return;
	capture->collector->rested = jiffies;
	/* start() has chosen the clock. */
	capture->collector->second = kbarman_clock_hz();
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
