// SPDX-License-Identifier: MIT
/*
 * One walk over the records feeds the analyses that other reports use, too, and what they say goes
 * to rows by small numbers: of names, functions, nodes of call chains. At the end the rows get
 * texts, by which the captures are compared.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <kbarman/chain.h>

#include "analysis/diff/read.h"
#include "analysis/diff/reading.h"
#include "analysis/facts/capture_names.h"
#include "analysis/facts/sources.h"
#include "analysis/latency/waited.h"
#include "analysis/time/idle.h"
#include "analysis/time/origin.h"
#include "analysis/trace/parts.h"

static int no_memory(struct kb_error *err)
{
	return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
}

/* ---- rows ---- */

/* Spread over the part of that time that is wanted. */
static int spread(struct kb_diff_reading *reading, struct kb_diff_set *set, uint32_t i, int64_t from,
		  int64_t until)
{
	from = from > reading->from ? from : reading->from;
	until = until < reading->until ? until : reading->until;
	return until < from ? 0 : kb_diff_set_spread(set, i, &reading->slicing, from, until);
}

static int add(struct kb_diff_reading *reading, struct kb_diff_set *set, uint32_t i, int64_t ns,
	       double amount)
{
	return kb_diff_set_add(set, i, &reading->slicing, ns, amount);
}

/* The number of the name that @task_id has; -ENOMEM. */
static int64_t task_row(struct kb_diff_reading *reading, uint32_t task_id, uint64_t ticks)
{
	const struct kb_name_id *id = kb_name_ids_find(&reading->ids, task_id, ticks);
	uint32_t room = reading->nr_called ? 2 * reading->nr_called : 64;
	const char **called;

	if (!id)
		return -ENOMEM;
	if (id->id >= reading->nr_called) {
		called = reallocarray(reading->tasks_called, room, sizeof(*called));
		if (!called)
			return -ENOMEM;
		reading->tasks_called = called;
		reading->nr_called = room;
	}
	reading->tasks_called[id->id] = id->name;
	return id->id;
}

static int note_symbol(struct kb_diff_reading *reading, const struct kb_symbol *symbol)
{
	uint32_t room = reading->nr_symbols ? 2 * reading->nr_symbols : 256;
	struct kb_diff_symbol *symbols;

	while (room <= symbol->id)
		room *= 2;
	if (symbol->id >= reading->nr_symbols) {
		symbols = reallocarray(reading->symbols, room, sizeof(*symbols));
		if (!symbols)
			return -ENOMEM;
		memset(symbols + reading->nr_symbols, 0,
		       (room - reading->nr_symbols) * sizeof(*symbols));
		reading->symbols = symbols;
		reading->nr_symbols = room;
	}
	reading->symbols[symbol->id] = (struct kb_diff_symbol){ symbol->name, symbol->image_base,
							symbol->kernel };
	return 0;
}

/* ---- what tasks did ---- */

static int add_run(struct kb_diff_reading *reading, const struct kb_slice *slice, uint64_t ticks)
{
	int64_t i;

	if (slice->kind != KB_SLICE_RUN || !slice->task_id || slice->end < slice->start ||
	    !kb_wanted_cpu(&reading->wanted, slice->core) ||
	    !kb_wanted_task(&reading->wanted, slice->task_id, ticks))
		return 0;
	i = task_row(reading, slice->task_id, ticks);
	return i < 0 ? (int)i : spread(reading, &reading->cpu_task, (uint32_t)i, slice->start,
				       slice->end);
}

/* @task_id begins to wait. Tasks of the kernel do not say for what. */
static int begin_wait(struct kb_diff_reading *reading, const struct kb_event *event, uint32_t task_id)
{
	uint64_t *waiting = kb_table_get(&reading->waiting, &(uint64_t){ task_id }), text;
	const struct kb_object *object = &event->task_switch.object;
	const struct kb_name_id *task;
	struct kb_waits_row row;
	char *name, what[KB_WAITED_TEXT];
	int length;

	if (!waiting)
		return -ENOMEM;
	waiting[1] = 0;
	if (!object->kind)
		return 0;
	task = kb_name_ids_find(&reading->ids, task_id, event->timestamp);
	if (!task)
		return -ENOMEM;
	row = kb_waited(reading->names, reading->tasks, object, task_id, event->timestamp);
	kb_waited_lasting(&row, what);
	length = asprintf(&name, "%s: %s", task->name, what);
	if (length < 0)
		return -ENOMEM;
	text = (uintptr_t)kb_diff_table_text(reading->table, name, (size_t)length);
	free(name);
	if (!text)
		return -ENOMEM;
	waiting[1] = kb_table_number(&reading->objects, &text, kb_table_hash(&reading->objects, &text)) + 1ULL;
	return waiting[1] > KB_TABLE_NONE ? -ENOMEM : 0;
}

/* A filter of waits that listens. kb_offcpu_filter() can't say -ENOMEM. */
static bool take_wait(void *context, const struct kb_wait *wait)
{
	struct kb_diff_reading *reading = context;
	int64_t until = (int64_t)((uint64_t)wait->since + wait->ns), i;
	const uint64_t task = wait->task_id, *object = kb_table_find(&reading->waiting, &task);

	if (!kb_wanted_wait(&reading->wanted, wait))
		return false;
	i = task_row(reading, wait->task_id, wait->ticks);
	if (i < 0 || kb_diff_set_spread(&reading->wait_task, (uint32_t)i, &reading->slicing,
					wait->since, until) ||
	    kb_diff_set_spread(&reading->wait_chain, wait->mark, &reading->slicing, wait->since,
			       until) ||
	    (wait->blocked && object && object[1] &&
	     kb_diff_set_spread(&reading->wait_object, (uint32_t)(object[1] - 1), &reading->slicing, wait->since,
				until)))
		reading->no_memory = true;
	return true;
}

static int take_delay(void *context, const struct kb_late *late)
{
	struct kb_diff_reading *reading = context;
	const struct kb_latency_wait *wait = &late->wait;
	int64_t i = task_row(reading, wait->task_id, wait->ticks);
	int64_t ns = (int64_t)((uint64_t)wait->since + wait->ns);
	struct kb_diff_delays *delays = &reading->delays;
	uint32_t room = delays->nr ? 2 * delays->nr : 64;
	struct kb_sliced_times *rows;

	if (i < 0)
		return (int)i;
	while (room <= i)
		room *= 2;
	if (i >= delays->nr) {
		rows = reallocarray(delays->rows, room, sizeof(*rows));
		if (!rows)
			return -ENOMEM;
		memset(rows + delays->nr, 0, (room - delays->nr) * sizeof(*rows));
		delays->rows = rows;
		delays->nr = room;
	}
	return add(reading, &reading->delay, (uint32_t)i, ns, (double)wait->ns) ?:
	       add(reading, &reading->delay_count, (uint32_t)i, ns, 1) ?:
	       kb_sliced_times_add(&delays->rows[i], &reading->slicing, ns, wait->ns) ?:
	       kb_sliced_times_add(&reading->delays_all, &reading->slicing, ns, wait->ns);
}

/* ---- samples ---- */

static int add_counters(struct kb_diff_reading *reading, const struct kb_event *event, int64_t ns,
			struct kb_diff_set *sets, uint32_t row)
{
	uint32_t nr = kb_names_of_core(reading->names, event->core);
	int ret = 0;

	for (uint32_t i = 0; i < nr && i < event->sample.nr_counters && !ret; i++) {
		uint32_t id = kb_names_counter_id(reading->names, event->core, i);

		if (id < reading->nr_counters && event->sample.counters[i] != KB_COUNTER_INVALID)
			ret = add(reading, &sets[id], row, ns, (double)event->sample.counters[i]);
	}
	return ret;
}

/*
 * Add a sample of a place: to its task, its function and its call chain. The time of the next one
 * begins with it, @wanted or not.
 */
static int add_place(struct kb_diff_reading *reading, const struct kb_event *event, int64_t ns,
		     int64_t task, bool wanted)
{
	const struct kb_frame *frames;
	uint64_t since;
	int64_t node;
	int ret = kb_cputime_sample(&reading->times, event, ns, &since);

	if (ret || !wanted)
		return ret;
	kb_symbolizer_frames(reading->symbolizer, event->task_id, event->timestamp,
			     event->sample.pc, &frames);
	ret = note_symbol(reading, &frames->symbol) ?:
	      add(reading, &reading->cpu_symbol, frames->symbol.id, ns, (double)since) ?:
	      add_counters(reading, event, ns, reading->by_symbol, frames->symbol.id) ?:
	      add(reading, &reading->sampled_task, (uint32_t)task, ns, (double)since);
	if (ret)
		return ret;
	node = kb_calltree_find(reading->calls, event, event->task_id, reading->symbolizer);
	return node < 0 ? (int)node :
	       add(reading, &reading->cpu_chain, (uint32_t)node, ns, (double)since);
}

static bool is_idle(const struct kb_diff_reading *reading, const struct kb_event *event)
{
	if (event->task_id)
		return false;
	return !event->sample.has_pc ||
	       kb_idle_symbol(kb_symbolizer_resolve(reading->symbolizer, 0, event->timestamp,
						    event->sample.pc));
}

/* How far the counter that samples advances in a sample. */
static void note_weight(struct kb_diff_reading *reading, const struct kb_event *event)
{
	if (!event->sample.has_pc || !event->sample.nr_counters ||
	    event->sample.counters[0] == KB_COUNTER_INVALID)
		return;
	reading->capture->weight += (double)event->sample.counters[0];
	reading->capture->weighed++;
}

/* What a sample that is not @wanted carries goes to the next one of its CPU. */
static int add_sample(struct kb_diff_reading *reading, const struct kb_event *event, int64_t ns,
		      bool wanted)
{
	struct kb_event carried = *event;
	bool idle = is_idle(reading, event);
	int64_t task = task_row(reading, event->task_id, event->timestamp);
	int ret = task < 0 ? (int)task : 0;

	if (wanted) {
		reading->capture->samples++;
		note_weight(reading, event);
	}
	if (!ret && !idle && wanted)
		ret = add_counters(reading, event, ns, reading->by_task, (uint32_t)task);
	if (!event->sample.has_pc && !reading->carry) {
		reading->carry = kb_carry_create(reading->header->max_cores,
						 kb_names_most_of_core(reading->names));
		if (!reading->carry)
			return -ENOMEM;
	}
	if (!event->sample.has_pc) {
		kb_carry_add(reading->carry, event);
		return ret;
	}
	if (reading->carry)
		kb_carry_take(reading->carry, &carried);
	return ret || idle ? ret : add_place(reading, &carried, ns, task, wanted);
}

/* ---- what CPUs did ---- */

/* An interrupt is of the task from which it took the time. Halts are of the idle task. */
static int add_tile(struct kb_diff_reading *reading, const struct kb_tile *tile)
{
	struct kb_origin origin = kb_origin_in(tile);
	uint32_t state = (uint32_t)(tile->idle_state + 1);
	uint64_t key = kb_origin_key(&origin), *row;

	if (!kb_wanted_cpu(&reading->wanted, tile->core) ||
	    !kb_wanted_task(&reading->wanted, tile->task_id, reading->last_ticks))
		return 0;
	if (tile->kind == KB_TILE_HALT) {
		state = state < KB_DIFF_STATES ? state : 0;
		reading->state_cores[state] = tile->core + 1;
		return spread(reading, &reading->idle, state, tile->start, tile->end);
	}
	if (!kb_origin_interrupts(tile->kind))
		return 0;
	row = kb_table_get(&reading->origins, &key);
	if (!row)
		return -ENOMEM;
	row[1] = reading->last_ticks;
	return spread(reading, &reading->irq,
		      (uint32_t)(((char *)row - reading->origins.rows) / reading->origins.row_size),
		      tile->start, tile->end);
}

/* ---- all records ---- */

static int add_slices(struct kb_diff_reading *reading, const struct kb_walk *walk)
{
	const struct kb_event *event = &walk->event;
	int ret = 0;

	for (unsigned int i = 0; i < walk->nr_slices && !ret; i++) {
		ret = kb_sched_add(reading->sched, &walk->slices[i], event->timestamp) ?:
		      add_run(reading, &walk->slices[i], event->timestamp);
		if (!ret && event->type == KB_EVENT_TASK_SWITCH)
			ret = kb_offcpu_switch(reading->offcpu, event, &walk->slices[i]);
		if (!ret && reading->capture->has_objects && kb_waited_begins(event, &walk->slices[i]))
			ret = begin_wait(reading, event, walk->slices[i].task_id);
	}
	return ret;
}

static int add_record(struct kb_diff_reading *reading, const struct kb_walk *walk)
{
	bool wanted = kb_wanted_record(&reading->wanted, walk);
	const struct kb_event *event = &walk->event;
	struct kb_tile tiles[KB_TILES_MOST];
	int nr, ret;

	if (wanted) {
		kb_slicing_at(&reading->slicing, walk->ns);
		reading->capture->records++;
		reading->capture->switches += event->type == KB_EVENT_TASK_SWITCH;
	}
	reading->has_switches |= event->type == KB_EVENT_TASK_SWITCH;
	reading->wakings += event->type == KB_EVENT_CUSTOM_COUNTER &&
			    event->custom_counter.what == KB_WHAT_WAKING;
	reading->last_ticks = event->timestamp;
	nr = kb_tiles_feed(reading->tiles, walk, tiles);
	ret = nr < 0 ? nr : kb_cputime_feed(&reading->times, walk) ?: add_slices(reading, walk);
	for (int i = 0; i < nr && !ret; i++)
		ret = add_tile(reading, &tiles[i]);
	if (!ret)
		ret = kb_wakeups_feed(reading->wakeups, walk);
	if (!ret && event->type == KB_EVENT_SAMPLE)
		ret = add_sample(reading, event, walk->ns, wanted);
	return ret;
}

/* What goes on at the end of the capture. */
static int add_end(struct kb_diff_reading *reading)
{
	struct kb_slice slice;
	struct kb_tile tile;
	int ret = 0;

	for (uint32_t core = 0; core < reading->header->max_cores && !ret; core++)
		if (kb_tiles_now(reading->tiles, core, &tile))
			ret = add_tile(reading, &tile);
	while (!ret && kb_trace_end(reading->trace, &slice))
		ret = kb_sched_add(reading->sched, &slice, reading->last_ticks) ?:
		      add_run(reading, &slice, reading->last_ticks);
	return ret;
}

/* With the first record: the slices of a run are those of the time that is wanted. */
static void begin_time(struct kb_diff_reading *reading)
{
	const struct kb_filter *filter = &reading->wanted.filter;

	if (!filter->has_time)
		return;
	reading->from = kb_wanted_from(&reading->wanted);
	reading->until = kb_wanted_until(&reading->wanted);
	kb_slicing_at(&reading->slicing, reading->from);
}

/* With the last record. */
static void end_time(struct kb_diff_reading *reading)
{
	int64_t first = kb_trace_first(reading->trace), last = kb_trace_last(reading->trace);

	reading->from = reading->from > first ? reading->from : first;
	reading->until = reading->until < last ? reading->until : last;
	/* Damaged captures are longer than an int64_t can say. */
	if (reading->until > reading->from)
		reading->capture->ns = (double)((uint64_t)reading->until - (uint64_t)reading->from);
	reading->capture->seconds = reading->capture->ns / 1e9;
}

static int read_all(struct kb_diff_reading *reading, struct kb_error *err)
{
	struct kb_trace *trace = reading->trace;
	const struct kb_walk *walk;
	int step = 0, ret = 0;
	bool begun = false;

	while (!ret && (step = kb_trace_next(trace, &walk, err)) > 0) {
		if (!begun)
			begin_time(reading);
		begun = true;
		ret = add_record(reading, walk);
	}
	if (ret || step == -ENOMEM || add_end(reading) || reading->no_memory)
		return no_memory(err);
	reading->capture->damaged = kb_trace_is_damaged(trace, step, err);
	end_time(reading);
	return 0;
}

/* ---- all of it ---- */

static int prepare(struct kb_diff_reading *reading, const struct kb_filter *filter,
		   struct kb_error *err)
{
	struct kb_trace *trace = reading->trace;
	int ret = kb_trace_rewind(trace, err);

	if (ret)
		return ret;
	reading->header = kb_trace_header(trace);
	reading->tasks = kb_trace_tasks(trace, err);
	reading->names = reading->tasks ? kb_trace_names(trace, err) : NULL;
	reading->symbolizer = reading->names ? kb_trace_symbolizer(trace, err) : NULL;
	if (!reading->symbolizer || !kb_trace_timeline(trace, err))
		return err && err->code ? err->code : -ENOMEM;
	reading->nr_counters = kb_names_nr_counters(reading->names);
	if (reading->nr_counters > KB_DIFF_COUNTERS)
		reading->nr_counters = KB_DIFF_COUNTERS;
	reading->slicing.wanted = reading->capture->slices;
	reading->capture->has_objects = kb_has_objects(kb_trace_barman(trace));
	ret = kb_wanted_init(&reading->wanted, trace, filter, err);
	if (ret)
		return ret;
	reading->from = INT64_MIN;
	reading->until = INT64_MAX;
	kb_name_ids_init(&reading->ids, reading->tasks);
	kb_table_init(&reading->origins, 2 * sizeof(uint64_t), 1);
	kb_table_init(&reading->objects, sizeof(uint64_t), 1);
	kb_table_init(&reading->waiting, 2 * sizeof(uint64_t), 1);
	return kb_gaps_read(&reading->gaps, trace, err);
}

static int create_parts(struct kb_diff_reading *reading, struct kb_error *err)
{
	struct kb_wakeups_parts parts = {
		.wanted = &reading->wanted,
		.gaps = &reading->gaps,
		.take = take_delay,
		.context = reading,
	};
	int ret = kb_sched_create(&reading->sched, reading->header->max_cores, err) ?:
		  kb_offcpu_create(&reading->offcpu, kb_trace_barman(reading->trace), reading->tasks,
				   reading->symbolizer, reading->sched, err) ?:
		  kb_calltree_create(&reading->calls, reading->tasks, err) ?:
		  kb_tiles_create(&reading->tiles, reading->trace, err);

	if (ret)
		return ret;
	kb_offcpu_filter(reading->offcpu, take_wait, reading);
	parts.tiles = reading->tiles;
	return kb_cputime_init(&reading->times, reading->trace) ||
	       kb_rotated_create(&reading->rotated, reading->header, reading->names) ||
	       kb_idle_states_create(&reading->states, reading->header) ||
	       kb_wakeups_create(&reading->wakeups, &parts) ? no_memory(err) : 0;
}

static void release_sets(struct kb_diff_reading *reading)
{
	struct kb_diff_set *const sets[] = {
		&reading->cpu_task, &reading->sampled_task, &reading->cpu_symbol,
		&reading->cpu_chain, &reading->wait_task, &reading->wait_chain, &reading->wait_object,
		&reading->delay, &reading->delay_count, &reading->idle, &reading->irq,
	};

	for (size_t i = 0; i < sizeof(sets) / sizeof(sets[0]); i++)
		kb_diff_set_release(sets[i]);
	for (uint32_t i = 0; i < KB_DIFF_COUNTERS; i++) {
		kb_diff_set_release(&reading->by_task[i]);
		kb_diff_set_release(&reading->by_symbol[i]);
	}
	for (uint32_t i = 0; i < reading->delays.nr; i++)
		kb_sliced_times_release(&reading->delays.rows[i]);
	free(reading->delays.rows);
	kb_sliced_times_release(&reading->delays_all);
}

static void destroy(struct kb_diff_reading *reading)
{
	release_sets(reading);
	kb_wakeups_destroy(reading->wakeups);
	kb_gaps_release(&reading->gaps);
	kb_idle_states_release(&reading->states);
	kb_tiles_destroy(reading->tiles);
	kb_calltree_destroy(reading->calls);
	kb_offcpu_destroy(reading->offcpu);
	kb_sched_destroy(reading->sched);
	kb_carry_destroy(reading->carry);
	kb_rotated_destroy(reading->rotated);
	kb_cputime_release(&reading->times);
	kb_name_ids_release(&reading->ids);
	kb_table_release(&reading->origins);
	kb_table_release(&reading->objects);
	kb_table_release(&reading->waiting);
	free(reading->tasks_called);
	free(reading->symbols);
	free(reading);
}

int kb_diff_read(struct kb_diff_table *table, struct kb_diff_capture *capture,
		 struct kb_trace *trace, const struct kb_filter *filter, struct kb_error *err)
{
	struct kb_diff_reading *reading = calloc(1, sizeof(*reading));
	int ret;

	if (!reading)
		return no_memory(err);
	reading->table = table;
	reading->capture = capture;
	reading->trace = trace;
	ret = prepare(reading, filter, err) ?: create_parts(reading, err) ?: read_all(reading, err) ?:
	      (kb_diff_put(reading) ? no_memory(err) : 0);
	destroy(reading);
	return ret ?: capture->damaged;
}
