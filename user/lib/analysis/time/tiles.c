// SPDX-License-Identifier: MIT
/*
 * One stack of levels for each CPU: at the bottom a task, idling or a halt, above it at most one
 * softirq, above it interrupts. The open tile is that of the innermost level. A record that changes
 * the innermost level ends the open tile at its time, and the next tile begins there, so there is
 * no gap and no overlap whatever the records say. A record that is out of order counts as one with
 * the time of the record before it.
 *
 * If the end of an interrupt is missing, as at the end of a recording, it is not known when it was
 * over, but soon as a rule. So the open tile is then that of what it interrupted.
 *
 * With PREEMPT_RT a task may be taken off its CPU inside a softirq, which goes on with the task, on
 * the same CPU.
 */
#include <errno.h>
#include <stdlib.h>

#include "analysis/facts/stops.h"
#include "analysis/time/sender.h"
#include "analysis/time/tiles_depth.h"
#include "base/table.h"

#define LEVELS_MAX	8U	/* more interrupts inside each other are not counted apart */

struct level {
	enum kb_tile_kind kind;
	uint32_t id;
	uint16_t behind;
	int64_t began;
	uint64_t own;
};

struct cpu {
	bool seen, has_task, lost_at_end, closed;
	uint32_t task_id;
	int idle_state;
	unsigned int depth;		/* of the innermost level; 0: the bottom */
	struct level levels[LEVELS_MAX];
	int64_t since;			/* ns: start of the open tile */
	int64_t last;			/* ns: the last record */
	uint64_t gaps;			/* how often records were missing */
	struct kb_sender sender;
};

/* The softirq of a task that was taken off its CPU. It may have ended in a gap of that CPU. */
struct parked {
	uint64_t task_id;		/* the key */
	bool used;
	uint32_t core;
	uint64_t gaps;			/* of that CPU, then */
	struct level level;
};

struct kb_tiles {
	struct kb_trace *trace;
	uint32_t max_cores;
	uint32_t next;			/* for kb_tiles_end(): the next core to close */
	uint32_t stop_series;
	bool drained, has_tasks;
	struct kb_table parked;
	struct cpu *cpus;
};

int kb_tiles_create(struct kb_tiles **out, struct kb_trace *trace, struct kb_error *err)
{
	const struct kb_header *header = kb_trace_header(trace);
	struct kb_tiles *tiles = calloc(1, sizeof(*tiles));

	if (tiles)
		tiles->cpus = calloc((size_t)header->max_cores + 1, sizeof(*tiles->cpus));
	if (!tiles || !tiles->cpus) {
		free(tiles);
		return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory for %u CPUs",
				    header->max_cores);
	}
	tiles->trace = trace;
	tiles->max_cores = header->max_cores;
	tiles->stop_series = kb_stops_series(header);
	tiles->has_tasks = header->max_task_infos;
	kb_table_init(&tiles->parked, sizeof(struct parked), 1);
	*out = tiles;
	return 0;
}

void kb_tiles_destroy(struct kb_tiles *tiles)
{
	if (!tiles)
		return;
	kb_table_release(&tiles->parked);
	free(tiles->cpus);
	free(tiles);
}

/* ---- tiles ---- */

/* The open tile of @cpu, up to @now. */
static struct kb_tile open_tile(const struct kb_tiles *tiles, const struct cpu *cpu, int64_t now)
{
	const struct level *level = &cpu->levels[cpu->depth];
	bool halts = cpu->levels[0].kind == KB_TILE_HALT;

	return (struct kb_tile){
		.kind = level->kind,
		.core = (uint32_t)(cpu - tiles->cpus),
		.id = level->id,
		.behind = level->behind,
		.idle_state = halts ? cpu->idle_state : KB_STATE_UNKNOWN,
		.halts = halts,
		.has_task = cpu->has_task,
		.task_id = cpu->task_id,
		.start = cpu->since,
		.end = now,
		.began = level->began,
		.own = level->own + ((uint64_t)now - (uint64_t)cpu->since),
	};
}

/* End the open tile at @now; @ends: what ran has ended. Returns the number of tiles in @out. */
static unsigned int close_tile(const struct kb_tiles *tiles, struct cpu *cpu, int64_t now,
			       bool ends, struct kb_tile *out)
{
	struct level *level = &cpu->levels[cpu->depth];

	if (now == cpu->since && !ends)
		return 0;
	*out = open_tile(tiles, cpu, now);
	out->ends = ends;
	level->own = out->own;
	cpu->since = now;
	return 1;
}

/* ---- levels ---- */

static void set_bottom(struct cpu *cpu, enum kb_tile_kind kind, int64_t now)
{
	cpu->depth = 0;
	cpu->levels[0] = (struct level){ .kind = kind, .began = now };
}

static void set_task(struct cpu *cpu, uint32_t task_id, int64_t now)
{
	set_bottom(cpu, task_id ? KB_TILE_TASK : KB_TILE_IDLE, now);
	cpu->has_task = true;
	cpu->task_id = task_id;
}

static void push(struct cpu *cpu, const struct level *level)
{
	cpu->levels[++cpu->depth] = *level;
}

/* The ends of all interrupts that are open are missing. */
static void drop_interrupts(struct cpu *cpu)
{
	while (cpu->depth && cpu->levels[cpu->depth].kind != KB_TILE_SOFTIRQ)
		cpu->depth--;
}

/* The softirq of the task that leaves the CPU goes with it. */
static int park_softirq(struct kb_tiles *tiles, const struct cpu *cpu)
{
	uint64_t key = cpu->task_id;
	struct parked *parked;

	if (!cpu->depth || cpu->levels[1].kind != KB_TILE_SOFTIRQ || !cpu->has_task || !key)
		return 0;
	parked = kb_table_get(&tiles->parked, &key);
	if (!parked)
		return -ENOMEM;
	parked->used = true;
	parked->core = (uint32_t)(cpu - tiles->cpus);
	parked->gaps = cpu->gaps;
	parked->level = cpu->levels[1];
	return 0;
}

static void unpark_softirq(struct kb_tiles *tiles, struct cpu *cpu, int64_t now)
{
	uint64_t key = cpu->task_id;
	struct parked *parked = tiles->parked.nr ? kb_table_find(&tiles->parked, &key) : NULL;

	if (!parked || !parked->used)
		return;
	parked->used = false;
	if (parked->core != (uint32_t)(cpu - tiles->cpus) || parked->gaps != cpu->gaps)
		return;
	if (parked->level.began > now)	/* records that are out of order */
		parked->level.began = now;
	push(cpu, &parked->level);
}

/* ---- records ---- */

static int feed_switch(struct kb_tiles *tiles, struct cpu *cpu, const struct kb_event *event,
		       int64_t now, struct kb_tile *out)
{
	int n;

	drop_interrupts(cpu);
	n = (int)close_tile(tiles, cpu, now, !cpu->depth && cpu->has_task, out);
	if (park_softirq(tiles, cpu))
		return -ENOMEM;
	set_task(cpu, event->task_id, now);
	unpark_softirq(tiles, cpu, now);
	return n;
}

static int feed_halt(const struct kb_tiles *tiles, struct cpu *cpu, const struct kb_event *event,
		     int64_t now, struct kb_tile *out)
{
	bool halts = cpu->levels[0].kind == KB_TILE_HALT;
	int n;

	if (!event->halt.entered && !halts)
		return 0;		/* the matching record is missing */
	drop_interrupts(cpu);
	n = (int)close_tile(tiles, cpu, now, !cpu->depth && (halts || cpu->has_task), out);
	if (tiles->has_tasks)		/* only the idle task halts */
		set_task(cpu, 0, now);
	else
		set_bottom(cpu, KB_TILE_UNKNOWN, now);
	if (event->halt.entered) {
		cpu->levels[0].kind = KB_TILE_HALT;
		cpu->idle_state = event->halt.idle_state;
	}
	return n;
}

static int enter(const struct kb_tiles *tiles, struct cpu *cpu, const struct level *level,
		 struct kb_tile *out)
{
	int n;

	if (level->kind != KB_TILE_SOFTIRQ && cpu->depth == LEVELS_MAX - 1)
		return 0;
	if (level->kind == KB_TILE_SOFTIRQ)
		drop_interrupts(cpu);	/* none begins inside of an interrupt */
	n = (int)close_tile(tiles, cpu, level->began, false, out);
	if (level->kind == KB_TILE_SOFTIRQ)
		cpu->depth = 0;		/* nor inside of another one */
	push(cpu, level);
	return n;
}

/* Leave the level of this kind and id. The ends of those that are still open in it are missing. */
static int leave(const struct kb_tiles *tiles, struct cpu *cpu, const struct level *level,
		 int64_t now, struct kb_tile *out)
{
	unsigned int depth = cpu->depth;
	int n;

	while (depth && (cpu->levels[depth].kind != level->kind ||
			 cpu->levels[depth].id != level->id))
		depth--;
	if (!depth)
		return 0;		/* it began before the first record, or was not counted */
	cpu->depth = depth;
	n = (int)close_tile(tiles, cpu, now, true, out);
	cpu->depth = depth - 1;
	return n;
}

/* A record of the kernel says which task runs, unless that is known. */
static int learn_task(const struct kb_tiles *tiles, struct cpu *cpu, uint32_t task_id, int64_t now,
		      struct kb_tile *out)
{
	struct level *bottom = &cpu->levels[0];
	int n = 0;

	if (bottom->kind != KB_TILE_UNKNOWN || !tiles->has_tasks)
		return 0;
	if (!cpu->depth)
		n = (int)close_tile(tiles, cpu, now, false, out);
	cpu->has_task = true;
	cpu->task_id = task_id;
	*bottom = (struct level){ .kind = task_id ? KB_TILE_TASK : KB_TILE_IDLE, .began = now };
	return n;
}

static int feed_custom(const struct kb_tiles *tiles, struct cpu *cpu, const struct kb_event *event,
		       int64_t now, struct kb_tile *out)
{
	struct level level = { .id = event->custom_counter.id, .began = now };
	int n, known;

	if (event->custom_counter.what == KB_WHAT_VALUE)
		return 0;
	known = learn_task(tiles, cpu, event->task_id, now, out);
	switch (event->custom_counter.what) {
	case KB_WHAT_IRQ_ENTRY:
	case KB_WHAT_IRQ_EXIT:
		level.kind = KB_TILE_IRQ;
		level.behind = event->custom_counter.cpu;
		break;
	case KB_WHAT_IPI_ENTRY:
	case KB_WHAT_IPI_EXIT:
		level.kind = KB_TILE_IPI;
		break;
	case KB_WHAT_SOFTIRQ_ENTRY:
	case KB_WHAT_SOFTIRQ_EXIT:
		level.kind = KB_TILE_SOFTIRQ;
		break;
	default:
		return known;
	}
	if (event->custom_counter.what == KB_WHAT_IRQ_ENTRY ||
	    event->custom_counter.what == KB_WHAT_IPI_ENTRY ||
	    event->custom_counter.what == KB_WHAT_SOFTIRQ_ENTRY)
		n = enter(tiles, cpu, &level, out + known);
	else
		n = leave(tiles, cpu, &level, now, out + known);
	return known + n;
}

/* Records are missing between @begin, which is not in front of the last one of @cpu, and @now. */
static int lose(const struct kb_tiles *tiles, struct cpu *cpu, int64_t begin, int64_t now,
		struct kb_tile *out)
{
	int n = (int)close_tile(tiles, cpu, begin, false, out);

	set_bottom(cpu, KB_TILE_LOST, begin);
	cpu->has_task = false;
	cpu->task_id = 0;
	cpu->gaps++;
	cpu->sender = (struct kb_sender){ .now = KB_SENDER_UNKNOWN };
	n += (int)close_tile(tiles, cpu, now, false, out + n);
	set_bottom(cpu, KB_TILE_UNKNOWN, now);
	return n;
}

/* The CPU does nothing until a record says which task runs. */
static int go_offline(const struct kb_tiles *tiles, struct cpu *cpu, int64_t now, struct kb_tile *out)
{
	int n = (int)close_tile(tiles, cpu, now, false, out);

	set_bottom(cpu, KB_TILE_UNKNOWN, now);
	cpu->has_task = false;
	cpu->task_id = 0;
	return n;
}

/* The gap that the record tells of, or NULL. */
static const struct kb_slice *lost_before(const struct kb_walk *walk)
{
	const struct kb_slice *last = walk->nr_slices ? &walk->slices[walk->nr_slices - 1] : NULL;

	return last && last->kind == KB_SLICE_LOST ? last : NULL;
}

int kb_tiles_feed(struct kb_tiles *tiles, const struct kb_walk *walk,
		  struct kb_tile out[KB_TILES_MOST])
{
	const struct kb_event *event = &walk->event;
	const struct kb_slice *gap = lost_before(walk);
	int64_t now = walk->ns;
	struct cpu *cpu;
	int n = 0;

	if (event->core >= tiles->max_cores || event->type == KB_EVENT_UNKNOWN)
		return 0;
	cpu = &tiles->cpus[event->core];
	if (!cpu->seen) {
		cpu->seen = true;
		cpu->since = cpu->last = now;
		cpu->idle_state = KB_STATE_UNKNOWN;
		set_bottom(cpu, KB_TILE_UNKNOWN, now);
	}
	if (now < cpu->last)
		now = cpu->last;
	if (event->type == KB_EVENT_TASK_SWITCH)
		n = feed_switch(tiles, cpu, event, now, out);
	else if (event->type == KB_EVENT_HALT)
		n = feed_halt(tiles, cpu, event, now, out);
	else if (event->type == KB_EVENT_SAMPLE)
		n = learn_task(tiles, cpu, event->task_id, now, out);
	else if (kb_stops_offline(event, tiles->stop_series))
		n = go_offline(tiles, cpu, now, out);
	else if (event->type == KB_EVENT_CUSTOM_COUNTER)
		n = gap ? lose(tiles, cpu, gap->start > cpu->last ? gap->start : cpu->last, now, out)
			: feed_custom(tiles, cpu, event, now, out);
	if (event->type == KB_EVENT_CUSTOM_COUNTER)
		kb_sender_feed(&cpu->sender, event);
	cpu->last = now;
	return n;
}

/* ---- the end ---- */

/* Which CPUs have lost records behind their last one? */
static void drain(struct kb_tiles *tiles)
{
	struct kb_slice slice;

	while (kb_trace_end(tiles->trace, &slice))
		if (slice.kind == KB_SLICE_LOST && slice.core < tiles->max_cores)
			tiles->cpus[slice.core].lost_at_end = true;
	tiles->drained = true;
}

/* The next tile of the end of @cpu: what was open, then what is lost behind it. */
static bool end_cpu(const struct kb_tiles *tiles, struct cpu *cpu, struct kb_tile *out)
{
	int64_t last = kb_trace_last(tiles->trace), end = cpu->lost_at_end ? cpu->last : last;

	if (!cpu->seen)
		return false;
	if (!cpu->closed) {
		cpu->closed = true;
		if (!cpu->lost_at_end)
			cpu->depth = 0;		/* the recording of its interrupts has ended before */
		if (close_tile(tiles, cpu, end, false, out))
			return true;
	}
	if (!cpu->lost_at_end)
		return false;
	cpu->lost_at_end = false;
	set_bottom(cpu, KB_TILE_LOST, end);
	cpu->has_task = false;
	return close_tile(tiles, cpu, last, false, out);
}

bool kb_tiles_end(struct kb_tiles *tiles, struct kb_tile *out)
{
	if (!tiles->drained)
		drain(tiles);
	for (; tiles->next < tiles->max_cores; tiles->next++)
		if (end_cpu(tiles, &tiles->cpus[tiles->next], out))
			return true;
	return false;
}

unsigned int kb_tiles_depth(const struct kb_tiles *tiles, uint32_t core)
{
	return core < tiles->max_cores ? tiles->cpus[core].depth : 0;
}

uint32_t kb_tiles_sender(const struct kb_tiles *tiles, uint32_t core)
{
	return core < tiles->max_cores ? tiles->cpus[core].sender.now : KB_SENDER_UNKNOWN;
}

bool kb_tiles_now(const struct kb_tiles *tiles, uint32_t core, struct kb_tile *out)
{
	if (core >= tiles->max_cores || !tiles->cpus[core].seen)
		return false;
	*out = open_tile(tiles, &tiles->cpus[core], tiles->cpus[core].last);
	return true;
}
