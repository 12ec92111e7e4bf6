// SPDX-License-Identifier: MIT
/*
 * What ended a halt is the first interrupt behind it, because the CPU leaves the halt with
 * interrupts off. In some idle states the handler runs inside of the halt; then it is the last one
 * there. Without an interrupt the CPU looked itself for work. On arm64 an IPI is inside of a
 * handler that has no name: then it is the IPI.
 *
 * Linux says that a state did not pay behind the halt, with interrupts on. So that record may come
 * behind the interrupt. Its state is the one that the driver entered: drivers may choose another
 * one than they are asked for.
 */
#include <errno.h>
#include <stdlib.h>

#include "analysis/latency/halt_misses.h"
#include "analysis/latency/halts.h"
#include "analysis/time/origin.h"
#include "base/table.h"

struct cpu {
	bool halts;		/* and nothing is known of its end */
	bool open;		/* the halt is over, but not what ended it */
	bool inside;		/* an interrupt came in the halt: */
	struct kb_origin origin;
	bool fresh;		/* the last record is of the interrupt that ended the halt: */
	uint64_t ended_by;	/* kb_origin_key() */
	uint64_t key;		/* kb_idle_state_key() of the last halt */
	bool wanted;
	bool told, missed;	/* the halt is over, and nothing came yet but interrupts; Linux says
				 * that its state did not pay: */
	struct kb_halt_miss last;
};

struct halts_row {
	uint64_t key;
	struct kb_halts row;
};

struct end_row {
	uint64_t key[2];	/* CPU and state + 1, kb_origin_key() */
	uint64_t count;
};

struct kb_halting {
	const struct kb_wanted *wanted;
	uint32_t max_cores;
	struct cpu *cpus;
	struct kb_table rows, ends;
	struct kb_halt_misses misses;

	struct kb_halts *shown;		/* results */
	struct kb_halt_end *shown_ends;
};

int kb_halting_create(struct kb_halting **out, const struct kb_wanted *wanted,
		      const struct kb_idle_states *states)
{
	uint32_t max_cores = kb_trace_header(wanted->trace)->max_cores;
	struct kb_halting *halting = calloc(1, sizeof(*halting));

	if (halting)
		halting->cpus = calloc((size_t)max_cores + 1, sizeof(*halting->cpus));
	if (!halting || !halting->cpus) {
		free(halting);
		return -ENOMEM;
	}
	halting->wanted = wanted;
	halting->max_cores = max_cores;
	kb_table_init(&halting->rows, sizeof(struct halts_row), 1);
	kb_table_init(&halting->ends, sizeof(struct end_row), 2);
	kb_halt_misses_init(&halting->misses, states);
	*out = halting;
	return 0;
}

void kb_halting_destroy(struct kb_halting *halting)
{
	if (!halting)
		return;
	kb_table_release(&halting->rows);
	kb_table_release(&halting->ends);
	kb_halt_misses_release(&halting->misses);
	free(halting->cpus);
	free(halting->shown);
	free(halting->shown_ends);
	free(halting);
}

/* @origin ended the last halt of @cpu. */
static int end_halt(struct kb_halting *halting, struct cpu *cpu, const struct kb_origin *origin)
{
	uint64_t key[2] = { cpu->key, kb_origin_key(origin) };
	struct end_row *row;

	cpu->open = false;
	cpu->last.origin = *origin;
	if (!cpu->wanted)
		return 0;
	row = kb_table_get(&halting->ends, key);
	if (!row)
		return -ENOMEM;
	row->count++;
	cpu->fresh = true;
	cpu->ended_by = key[1];
	return 0;
}

/* Not the handler ended the last halt of @cpu, but the IPI inside of it. */
static int correct_end(struct kb_halting *halting, struct cpu *cpu, const struct kb_origin *ipi)
{
	uint64_t key[2] = { cpu->key, cpu->ended_by };
	struct end_row *row = kb_table_find(&halting->ends, key);

	if (!row || kb_origin_of(cpu->ended_by).kind != KB_TILE_IRQ)
		return 0;
	row->count--;
	return end_halt(halting, cpu, ipi);
}

static int add_halt(struct kb_halting *halting, struct cpu *cpu, const struct kb_tile *tile)
{
	struct halts_row *row;

	cpu->halts = false;
	cpu->open = true;
	cpu->key = kb_idle_state_key(tile->core, tile->idle_state);
	cpu->told = true;
	cpu->last = (struct kb_halt_miss){
		.core = tile->core,
		.chosen = tile->idle_state,
		.since = tile->began,
		.ns = (uint64_t)tile->end - (uint64_t)tile->began,
	};
	cpu->wanted = kb_wanted_cpu(halting->wanted, tile->core) &&
		      kb_wanted_time(halting->wanted, tile->began);
	if (cpu->wanted) {
		row = kb_table_get(&halting->rows, &cpu->key);
		if (!row)
			return -ENOMEM;
		row->row.count++;
		row->row.ns += tile->own;
	}
	return cpu->inside ? end_halt(halting, cpu, &cpu->origin) : 0;
}

int kb_halting_add(struct kb_halting *halting, const struct kb_tile *tile)
{
	struct cpu *cpu = &halting->cpus[tile->core];

	if (tile->kind == KB_TILE_LOST)
		*cpu = (struct cpu){ .wanted = false };
	return tile->kind == KB_TILE_HALT && tile->ends ? add_halt(halting, cpu, tile) : 0;
}

static int feed_interrupt(struct kb_halting *halting, struct cpu *cpu,
			  const struct kb_event *event)
{
	bool irq = event->custom_counter.what == KB_WHAT_IRQ_ENTRY, fresh = cpu->fresh;
	const struct kb_origin origin = {
		.kind = irq ? KB_TILE_IRQ : KB_TILE_IPI,
		.id = event->custom_counter.id,
		.behind = irq ? event->custom_counter.cpu : 0,
	};

	if (cpu->halts) {
		cpu->inside = true;
		cpu->origin = origin;
	}
	cpu->fresh = false;
	if (fresh && !irq)
		return correct_end(halting, cpu, &origin);
	return cpu->open ? end_halt(halting, cpu, &origin) : 0;
}

static int feed_miss(struct kb_halting *halting, const struct kb_walk *walk)
{
	const struct kb_event *event = &walk->event;
	struct cpu *cpu = &halting->cpus[event->core];
	uint64_t key = kb_idle_state_key(event->core, (int)event->custom_counter.id);
	bool too_shallow = event->custom_counter.context;
	struct kb_halt_miss *last = &cpu->last;
	struct halts_row *row;

	if (event->custom_counter.id > UINT8_MAX || !kb_wanted_cpu(halting->wanted, event->core) ||
	    !kb_wanted_time(halting->wanted, cpu->told ? last->since : walk->ns))
		return 0;
	row = kb_table_get(&halting->rows, &key);
	if (!row)
		return -ENOMEM;
	*(too_shallow ? &row->row.too_shallow : &row->row.too_deep) += 1;
	if (!cpu->told || cpu->missed)
		return 0;
	*(too_shallow ? &row->row.too_shallow_ns : &row->row.too_deep_ns) += last->ns;
	cpu->missed = true;
	last->state = (int)event->custom_counter.id;
	last->too_shallow = too_shallow;
	return kb_halt_misses_count(&halting->misses, last);
}

/* The CPU goes on after its last halt: with @task_id, or with another halt. */
static void go_on(struct kb_halting *halting, struct cpu *cpu, const struct kb_event *event,
		  const struct kb_woken *woken)
{
	struct kb_halt_miss *last = &cpu->last;

	if (cpu->told && cpu->missed) {
		last->ticks = event->timestamp;
		last->has_task = event->type == KB_EVENT_TASK_SWITCH && event->task_id;
		last->task_id = last->has_task ? event->task_id : 0;
		last->is_woken = last->has_task && woken;
		if (last->is_woken) {
			last->waker = woken->waker;
			last->waker_core = woken->core;
		}
		kb_halt_misses_keep(&halting->misses, last);
	}
	cpu->told = cpu->missed = false;
}

int kb_halting_feed(struct kb_halting *halting, const struct kb_walk *walk,
		    const struct kb_woken *woken)
{
	static const struct kb_origin nobody = { .kind = KB_TILE_UNKNOWN };
	const struct kb_event *event = &walk->event;
	struct cpu *cpu;
	int ret = 0;

	if (event->core >= halting->max_cores)
		return 0;
	cpu = &halting->cpus[event->core];
	if (event->type == KB_EVENT_TASK_SWITCH ||
	    (event->type == KB_EVENT_HALT && event->halt.entered)) {
		ret = cpu->open ? end_halt(halting, cpu, &nobody) : 0;
		go_on(halting, cpu, event, woken);
		cpu->halts = event->type == KB_EVENT_HALT;
		cpu->inside = false;
	} else if (event->type == KB_EVENT_CUSTOM_COUNTER) {
		if (event->custom_counter.what == KB_WHAT_IRQ_ENTRY ||
		    event->custom_counter.what == KB_WHAT_IPI_ENTRY)
			return feed_interrupt(halting, cpu, event);
		if (event->custom_counter.what == KB_WHAT_IDLE_MISS)
			ret = feed_miss(halting, walk);
	}
	cpu->fresh = false;
	return ret;
}

/* ---- results ---- */

static int compare_rows(const void *left, const void *right)
{
	const struct kb_halts *a = left, *b = right;

	if (a->core != b->core)
		return a->core > b->core ? 1 : -1;
	return (a->state > b->state) - (a->state < b->state);
}

static int compare_ends(const void *left, const void *right)
{
	const struct kb_halt_end *a = left, *b = right;
	uint64_t a_key = kb_origin_key(&a->origin), b_key = kb_origin_key(&b->origin);

	if (a->core != b->core)
		return a->core > b->core ? 1 : -1;
	if (a->state != b->state)
		return a->state > b->state ? 1 : -1;
	if (a->count != b->count)
		return a->count > b->count ? -1 : 1;
	return (a_key > b_key) - (a_key < b_key);
}

int kb_halting_finish(struct kb_halting *halting, struct kb_latency *shown)
{
	static const struct kb_event end = { .type = KB_EVENT_HALT };
	uint32_t i, nr = halting->rows.nr, nr_ends = 0;

	halting->shown = calloc((size_t)nr + 1, sizeof(*halting->shown));
	halting->shown_ends = calloc((size_t)halting->ends.nr + 1, sizeof(*halting->shown_ends));
	if (!halting->shown || !halting->shown_ends)
		return -ENOMEM;
	for (i = 0; i < nr; i++) {
		const struct halts_row *row = kb_table_row(&halting->rows, i);

		halting->shown[i] = row->row;
		halting->shown[i].core = (uint32_t)(row->key >> 32);
		halting->shown[i].state = (int)(uint32_t)row->key - 1;
	}
	for (i = 0; i < halting->ends.nr; i++) {
		const struct end_row *row = kb_table_row(&halting->ends, i);

		if (!row->count)
			continue;
		halting->shown_ends[nr_ends++] = (struct kb_halt_end){
			.core = (uint32_t)(row->key[0] >> 32),
			.state = (int)(uint32_t)row->key[0] - 1,
			.origin = kb_origin_of(row->key[1]),
			.count = row->count,
		};
	}
	for (i = 0; i < halting->max_cores; i++)
		go_on(halting, &halting->cpus[i], &end, NULL);
	qsort(halting->shown, nr, sizeof(*halting->shown), compare_rows);
	qsort(halting->shown_ends, nr_ends, sizeof(*halting->shown_ends), compare_ends);
	shown->halts = halting->shown;
	shown->nr_halts = nr;
	shown->halt_ends = halting->shown_ends;
	shown->nr_halt_ends = nr_ends;
	return kb_halt_misses_finish(&halting->misses, shown);
}
