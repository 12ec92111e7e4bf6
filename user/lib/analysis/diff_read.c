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

#include "analysis/calltree.h"
#include "analysis/capture_names.h"
#include "analysis/carry.h"
#include "analysis/cputime.h"
#include "analysis/diff_series.h"
#include "analysis/idle.h"
#include "analysis/idle_states.h"
#include "analysis/name_ids.h"
#include "analysis/offcpu.h"
#include "analysis/origin.h"
#include "analysis/wakeups.h"

#define COUNTERS_MOST	16U
#define STATES		257U	/* the unknown one is 0 */

/* A function, by its id of the symbolizer. */
struct symbol {
	const char *name, *image;
	bool kernel;
};

/* The times until tasks ran, by name. */
struct delays {
	struct kb_sliced_times *rows;
	uint32_t nr;
};

struct reading {
	struct kb_diff_table *table;
	struct kb_diff_capture *capture;
	struct kb_trace *trace;
	const struct kb_header *header;
	const struct kb_tasks *tasks;
	const struct kb_names *names;
	struct kb_symbolizer *symbolizer;
	struct kb_slicing slicing;

	/* what knows what records mean */
	struct kb_cputime times;
	struct kb_carry *carry;		/* NULL: all samples have a place */
	struct kb_sched *sched;
	struct kb_offcpu *offcpu;
	struct kb_calltree *calls;
	struct kb_tiles *tiles;
	struct kb_wanted wanted;
	struct kb_gaps gaps;
	struct kb_wakeups *wakeups;
	struct kb_idle_states states;
	struct kb_name_ids ids;

	/* names of the rows */
	const char **tasks_called;	/* by number of a name */
	uint32_t nr_called;
	struct symbol *symbols;		/* by id */
	uint32_t nr_symbols;
	struct kb_table origins;	/* of interrupts */
	const struct kb_calltree_node *nodes;	/* of the tree whose rows are put */
	int64_t *places;		/* by node: in the table; 0: not looked up yet */
	uint32_t state_cores[STATES];	/* a CPU that was in that idle state, + 1 */

	/* the rows */
	struct kb_diff_set cpu_task, sampled_task, cpu_symbol, cpu_chain;
	struct kb_diff_set wait_task, wait_chain;
	struct kb_diff_set delay, delay_count;	/* by task */
	struct delays delays;
	struct kb_sliced_times delays_all;
	struct kb_diff_set idle, irq;
	struct kb_diff_set by_task[COUNTERS_MOST], by_symbol[COUNTERS_MOST];
	uint32_t nr_counters;
	uint64_t wakings;
	uint64_t last_ticks;
	bool no_memory;
};

static int no_memory(struct kb_error *err)
{
	return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
}

/* ---- rows ---- */

static int spread(struct reading *reading, struct kb_diff_set *set, uint32_t i, int64_t from,
		  int64_t until)
{
	struct kb_sliced *row = kb_diff_set_row(set, i);

	if (!row)
		return -ENOMEM;
	return kb_sliced_spread(row, &reading->slicing, from, until,
				(double)((uint64_t)until - (uint64_t)from));
}

static int add(struct reading *reading, struct kb_diff_set *set, uint32_t i, int64_t ns,
	       double amount)
{
	struct kb_sliced *row = kb_diff_set_row(set, i);

	return row ? kb_sliced_add(row, &reading->slicing, ns, amount) : -ENOMEM;
}

/* The number of the name that @task_id has; -ENOMEM. */
static int64_t task_row(struct reading *reading, uint32_t task_id, uint64_t ticks)
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

static int note_symbol(struct reading *reading, const struct kb_symbol *symbol)
{
	uint32_t room = reading->nr_symbols ? 2 * reading->nr_symbols : 256;
	struct symbol *symbols;

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
	reading->symbols[symbol->id] = (struct symbol){ symbol->name, symbol->image_base,
							symbol->kernel };
	return 0;
}

/* ---- what tasks did ---- */

static int add_run(struct reading *reading, const struct kb_slice *slice, uint64_t ticks)
{
	int64_t i;

	if (slice->kind != KB_SLICE_RUN || !slice->task_id || slice->end < slice->start)
		return 0;
	i = task_row(reading, slice->task_id, ticks);
	return i < 0 ? (int)i : spread(reading, &reading->cpu_task, (uint32_t)i, slice->start,
				       slice->end);
}

/* Listens as a filter of waits, all of which are wanted. kb_offcpu_filter() can't say -ENOMEM. */
static bool take_wait(void *context, const struct kb_wait *wait)
{
	struct reading *reading = context;
	int64_t i = task_row(reading, wait->task_id, wait->ticks);
	int64_t until = (int64_t)((uint64_t)wait->since + wait->ns);

	if (i < 0 || spread(reading, &reading->wait_task, (uint32_t)i, wait->since, until) ||
	    spread(reading, &reading->wait_chain, wait->mark, wait->since, until))
		reading->no_memory = true;
	return true;
}

static int take_delay(void *context, const struct kb_latency_wait *wait)
{
	struct reading *reading = context;
	int64_t i = task_row(reading, wait->task_id, wait->ticks);
	int64_t ns = (int64_t)((uint64_t)wait->since + wait->ns);
	struct delays *delays = &reading->delays;
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

static int add_counters(struct reading *reading, const struct kb_event *event, int64_t ns,
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

/* Add a sample of a place: to its task, its function and its call chain. */
static int add_place(struct reading *reading, const struct kb_event *event, int64_t ns,
		     int64_t task)
{
	const struct kb_frame *frames;
	uint64_t since;
	int64_t node;
	int ret = kb_cputime_sample(&reading->times, event, ns, &since);

	if (ret)
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

static bool is_idle(const struct reading *reading, const struct kb_event *event)
{
	if (event->task_id)
		return false;
	return !event->sample.has_pc ||
	       kb_idle_symbol(kb_symbolizer_resolve(reading->symbolizer, 0, event->timestamp,
						    event->sample.pc));
}

static int add_sample(struct reading *reading, const struct kb_event *event, int64_t ns)
{
	struct kb_event carried = *event;
	bool idle = is_idle(reading, event);
	int64_t task = task_row(reading, event->task_id, event->timestamp);
	int ret = task < 0 ? (int)task : 0;

	reading->capture->samples++;
	if (!ret && !idle)
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
	return ret || idle ? ret : add_place(reading, &carried, ns, task);
}

/* ---- what CPUs did ---- */

static int add_tile(struct reading *reading, const struct kb_tile *tile)
{
	struct kb_origin origin = kb_origin_in(tile);
	uint32_t state = (uint32_t)(tile->idle_state + 1);
	uint64_t key = kb_origin_key(&origin), *row;

	if (tile->kind == KB_TILE_HALT) {
		state = state < STATES ? state : 0;
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

static int add_slices(struct reading *reading, const struct kb_walk *walk)
{
	const struct kb_event *event = &walk->event;
	int ret = 0;

	for (unsigned int i = 0; i < walk->nr_slices && !ret; i++) {
		ret = kb_sched_add(reading->sched, &walk->slices[i], event->timestamp) ?:
		      add_run(reading, &walk->slices[i], event->timestamp);
		if (!ret && event->type == KB_EVENT_TASK_SWITCH)
			ret = kb_offcpu_switch(reading->offcpu, event, &walk->slices[i]);
	}
	return ret;
}

static int add_record(struct reading *reading, const struct kb_walk *walk)
{
	const struct kb_event *event = &walk->event;
	struct kb_tile tiles[KB_TILES_MOST];
	int nr, ret;

	kb_slicing_at(&reading->slicing, walk->ns);
	reading->capture->records++;
	reading->capture->switches += event->type == KB_EVENT_TASK_SWITCH;
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
		ret = add_sample(reading, event, walk->ns);
	return ret;
}

/* What goes on at the end of the capture. */
static int add_end(struct reading *reading)
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

static int read_all(struct reading *reading, struct kb_error *err)
{
	struct kb_trace *trace = reading->trace;
	const struct kb_error *first;
	const struct kb_walk *walk;
	int step = 0, ret = 0;

	while (!ret && (step = kb_trace_next(trace, &walk, err)) > 0)
		ret = add_record(reading, walk);
	if (ret || step == -ENOMEM || add_end(reading) || reading->no_memory)
		return no_memory(err);
	reading->capture->damaged = step < 0;
	if (!step && kb_barman_damage(kb_trace_barman(trace), &first)) {
		reading->capture->damaged = true;
		if (err)
			*err = *first;
	}
	reading->capture->seconds = (double)kb_trace_duration(trace) / 1e9;
	return 0;
}

/* ---- the names of rows ---- */

static int text(struct reading *reading, const char **out, const char *string, size_t length)
{
	*out = kb_diff_table_text(reading->table, string, length);
	return *out ? 0 : -ENOMEM;
}

static int name_task(void *context, uint32_t i, struct kb_diff_what *what)
{
	struct reading *reading = context;
	const char *name = reading->tasks_called[i];

	return text(reading, &what->name, name, strlen(name));
}

static int name_symbol(void *context, uint32_t i, struct kb_diff_what *what)
{
	struct reading *reading = context;
	const struct symbol *symbol = &reading->symbols[i];

	what->kernel = symbol->kernel;
	return text(reading, &what->name, symbol->name, strlen(symbol->name)) ?:
	       text(reading, &what->image, symbol->image, strlen(symbol->image));
}

/* The node of the table that stands for node @i. Parents come first. */
static int64_t place_of(struct reading *reading, uint32_t i)
{
	const struct kb_calltree_node *node = &reading->nodes[i];
	const char *name, *image;
	int64_t parent;

	if (i == KB_CALLTREE_ROOT || reading->places[i])
		return reading->places[i];
	parent = place_of(reading, node->parent);
	if (parent < 0 || text(reading, &name, node->name, strlen(node->name)) ||
	    text(reading, &image, node->image_base, strlen(node->image_base)))
		return -ENOMEM;
	reading->places[i] = kb_diff_table_place(reading->table, (uint32_t)parent, name, image,
						 node->kernel);
	return reading->places[i];
}

static int name_chain(void *context, uint32_t i, struct kb_diff_what *what)
{
	struct reading *reading = context;
	int64_t place = place_of(reading, i);
	const struct kb_diff_place *row;

	if (place < 0)
		return (int)place;
	row = kb_table_row(&reading->table->places, (uint32_t)place);
	what->node = (uint32_t)place;
	what->name = row->name;
	what->image = row->image;
	what->kernel = row->kernel;
	return 0;
}

static int name_state(void *context, uint32_t i, struct kb_diff_what *what)
{
	struct reading *reading = context;
	struct kb_text name = { 0 };
	char number[24];

	if (reading->state_cores[i])
		name = kb_idle_states_name(&reading->states, reading->state_cores[i] - 1,
					   (int)i - 1);
	snprintf(number, sizeof(number), i ? "state %u" : "unknown state", i - 1);
	if (!name.length)
		name = kb_text(number);
	return text(reading, &what->name, name.data, name.length);
}

static int name_handler(void *context, uint32_t i, struct kb_diff_what *what)
{
	struct reading *reading = context;
	const uint64_t *row = kb_table_row(&reading->origins, i);
	struct kb_origin origin = kb_origin_of(row[0]);
	char name[KB_ORIGIN_NAME];

	kb_origin_name(reading->trace, &origin, row[1], name, sizeof(name));
	return text(reading, &what->name, name, strlen(name));
}

/* ---- cells ---- */

static int put_tree(struct reading *reading, const struct kb_diff_cells *cells,
		    struct kb_calltree *tree, const struct kb_diff_set *set,
		    enum kb_diff_measure measure)
{
	const struct kb_diff_what what = { .measure = measure, .by = KB_DIFF_CHAIN };
	const uint32_t *order;
	uint32_t nr;
	int ret;

	reading->nodes = kb_calltree_finish(tree, true, &nr, &order);
	reading->places = calloc((size_t)nr + 1, sizeof(*reading->places));
	ret = !reading->nodes || !reading->places ? -ENOMEM :
	      kb_diff_put_set(cells, set, what, false, name_chain, reading);
	free(reading->places);
	reading->places = NULL;
	return ret;
}

static int put_times(struct reading *reading, const struct kb_diff_cells *cells)
{
	const struct kb_diff_what cpu_task = { .measure = KB_DIFF_CPU, .by = KB_DIFF_TASK };
	const struct kb_diff_what cpu_symbol = { .measure = KB_DIFF_CPU, .by = KB_DIFF_SYMBOL };
	const struct kb_diff_what wait_task = { .measure = KB_DIFF_WAIT, .by = KB_DIFF_TASK };
	const struct kb_diff_what idle = { .measure = KB_DIFF_IDLE, .by = KB_DIFF_STATE };
	const struct kb_diff_what irq = { .measure = KB_DIFF_IRQ, .by = KB_DIFF_HANDLER };
	const struct kb_diff_what whole = { .measure = KB_DIFF_TIME };
	const struct kb_diff_set *tasks = reading->capture->switches ? &reading->cpu_task :
								       &reading->sampled_task;
	struct kb_diff_cell length = {
		.capture = reading->capture->number,
		.value = reading->capture->seconds * 1e9,
		.weight = reading->capture->seconds * 1e9,
		.events = (double)reading->capture->records,
	};

	return kb_diff_table_put(cells->table, &whole, &length) ?:
	       kb_diff_put_set(cells, tasks, cpu_task, true, name_task, reading) ?:
	       kb_diff_put_set(cells, &reading->cpu_symbol, cpu_symbol, false, name_symbol,
			       reading) ?:
	       put_tree(reading, cells, reading->calls, &reading->cpu_chain, KB_DIFF_CPU) ?:
	       kb_diff_put_set(cells, &reading->wait_task, wait_task, true, name_task, reading) ?:
	       put_tree(reading, cells, kb_offcpu_tree(reading->offcpu), &reading->wait_chain,
			KB_DIFF_WAIT) ?:
	       kb_diff_put_set(cells, &reading->idle, idle, true, name_state, reading) ?:
	       kb_diff_put_set(cells, &reading->irq, irq, true, name_handler, reading);
}

/* How long tasks that could run did not is known only with the wakeups. */
static int put_delays(struct reading *reading, const struct kb_diff_cells *cells)
{
	struct kb_diff_what mean = { .measure = KB_DIFF_LATENCY, .by = KB_DIFF_TASK };
	struct kb_diff_what p99 = { .measure = KB_DIFF_LATENCY_P99 };
	int ret;

	if (!reading->wakings)
		return 0;
	ret = kb_diff_put_ratios(cells, &reading->delay, &reading->delay_count, mean, true,
				 name_task, reading) ?:
	      kb_diff_put_p99(cells, &reading->delays_all, &p99);
	p99.by = KB_DIFF_TASK;
	for (uint32_t i = 0; i < reading->delays.nr && !ret; i++)
		if (reading->delays.rows[i].all.count)
			ret = name_task(reading, i, &p99) ?:
			      kb_diff_put_p99(cells, &reading->delays.rows[i], &p99);
	return ret;
}

static int put_counters(struct reading *reading, const struct kb_diff_cells *cells)
{
	uint32_t cycles = kb_names_find(reading->names, "cycles", "cpu-cycles");
	uint32_t instructions = kb_names_find(reading->names, "instructions", "inst_retired");
	struct kb_diff_what what = { .measure = KB_DIFF_COUNTER };
	int ret = 0;

	for (uint32_t i = 0; i < reading->nr_counters && !ret; i++) {
		struct kb_text name = kb_names_counter(reading->names, i);

		if (kb_cputime_is_clock(name))
			continue;	/* the CPU time says the same */
		ret = text(reading, &what.counter, name.data, name.length);
		what.by = KB_DIFF_TASK;
		ret = ret ?: kb_diff_put_set(cells, &reading->by_task[i], what, true, name_task,
					     reading);
		what.by = KB_DIFF_SYMBOL;
		ret = ret ?: kb_diff_put_set(cells, &reading->by_symbol[i], what, false,
					     name_symbol, reading);
	}
	if (ret || cycles >= reading->nr_counters || instructions >= reading->nr_counters)
		return ret;
	what = (struct kb_diff_what){ .measure = KB_DIFF_IPC, .by = KB_DIFF_TASK };
	ret = kb_diff_put_ratios(cells, &reading->by_task[instructions], &reading->by_task[cycles],
				 what, true, name_task, reading);
	what.by = KB_DIFF_SYMBOL;
	return ret ?: kb_diff_put_ratios(cells, &reading->by_symbol[instructions],
					 &reading->by_symbol[cycles], what, false, name_symbol,
					 reading);
}

static int put_all(struct reading *reading, struct kb_error *err)
{
	const struct kb_diff_cells cells = {
		.table = reading->table,
		.capture = reading->capture,
		.slicing = &reading->slicing,
		.last = kb_trace_last(reading->trace),
	};

	return put_times(reading, &cells) || put_delays(reading, &cells) ||
	       put_counters(reading, &cells) ? no_memory(err) : 0;
}

/* ---- all of it ---- */

static int prepare(struct reading *reading, struct kb_error *err)
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
	if (reading->nr_counters > COUNTERS_MOST)
		reading->nr_counters = COUNTERS_MOST;
	reading->slicing.wanted = reading->capture->slices;
	reading->wanted.trace = trace;
	reading->wanted.tasks = reading->tasks;
	kb_name_ids_init(&reading->ids, reading->tasks);
	kb_table_init(&reading->origins, 2 * sizeof(uint64_t), 1);
	return kb_gaps_read(&reading->gaps, trace, err);
}

static int create_parts(struct reading *reading, struct kb_error *err)
{
	struct kb_wakeups_parts parts = {
		.wanted = &reading->wanted,
		.gaps = &reading->gaps,
		.take = take_delay,
		.context = reading,
	};
	int ret = kb_sched_create(&reading->sched, reading->header->max_cores, err) ?:
		  kb_offcpu_create(&reading->offcpu, reading->tasks, reading->symbolizer,
				   reading->sched, err) ?:
		  kb_calltree_create(&reading->calls, reading->tasks, err) ?:
		  kb_tiles_create(&reading->tiles, reading->trace, err);

	if (ret)
		return ret;
	kb_offcpu_filter(reading->offcpu, take_wait, reading);
	parts.tiles = reading->tiles;
	return kb_cputime_init(&reading->times, reading->trace) ||
	       kb_idle_states_create(&reading->states, reading->header) ||
	       kb_wakeups_create(&reading->wakeups, &parts) ? no_memory(err) : 0;
}

static void release_sets(struct reading *reading)
{
	struct kb_diff_set *const sets[] = {
		&reading->cpu_task, &reading->sampled_task, &reading->cpu_symbol,
		&reading->cpu_chain, &reading->wait_task, &reading->wait_chain, &reading->delay,
		&reading->delay_count, &reading->idle, &reading->irq,
	};

	for (size_t i = 0; i < sizeof(sets) / sizeof(sets[0]); i++)
		kb_diff_set_release(sets[i]);
	for (uint32_t i = 0; i < COUNTERS_MOST; i++) {
		kb_diff_set_release(&reading->by_task[i]);
		kb_diff_set_release(&reading->by_symbol[i]);
	}
	for (uint32_t i = 0; i < reading->delays.nr; i++)
		kb_sliced_times_release(&reading->delays.rows[i]);
	free(reading->delays.rows);
	kb_sliced_times_release(&reading->delays_all);
}

static void destroy(struct reading *reading)
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
	kb_cputime_release(&reading->times);
	kb_name_ids_release(&reading->ids);
	kb_table_release(&reading->origins);
	free(reading->tasks_called);
	free(reading->symbols);
	free(reading);
}

int kb_diff_read(struct kb_diff_table *table, struct kb_diff_capture *capture,
		 struct kb_trace *trace, struct kb_error *err)
{
	struct reading *reading = calloc(1, sizeof(*reading));
	int ret;

	if (!reading)
		return no_memory(err);
	reading->table = table;
	reading->capture = capture;
	reading->trace = trace;
	ret = prepare(reading, err) ?: create_parts(reading, err) ?: read_all(reading, err) ?:
	      put_all(reading, err);
	destroy(reading);
	return ret ?: capture->damaged;
}
