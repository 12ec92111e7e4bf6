// SPDX-License-Identifier: MIT
/* What was read of a capture becomes cells: rows by small numbers become rows by their names. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/diff/reading.h"
#include "analysis/facts/capture_names.h"
#include "analysis/time/origin.h"

/* ---- the names of rows ---- */

static int put_text(struct kb_diff_reading *reading, const char **out, const char *string, size_t length)
{
	*out = kb_diff_table_text(reading->table, string, length);
	return *out ? 0 : -ENOMEM;
}

static int name_task(void *context, uint32_t i, struct kb_diff_what *what)
{
	struct kb_diff_reading *reading = context;
	const char *name = reading->tasks_called[i];

	return put_text(reading, &what->name, name, strlen(name));
}

static int name_symbol(void *context, uint32_t i, struct kb_diff_what *what)
{
	struct kb_diff_reading *reading = context;
	const struct kb_diff_symbol *symbol = &reading->symbols[i];

	what->kernel = symbol->kernel;
	return put_text(reading, &what->name, symbol->name, strlen(symbol->name)) ?:
	       put_text(reading, &what->image, symbol->image, strlen(symbol->image));
}

/* The node of the table that stands for node @i. Parents come first. */
static int64_t place_of(struct kb_diff_reading *reading, uint32_t i)
{
	const struct kb_calltree_node *node = &reading->nodes[i];
	const char *name, *image;
	int64_t parent;

	if (i == KB_CALLTREE_ROOT || reading->places[i])
		return reading->places[i];
	parent = place_of(reading, node->parent);
	if (parent < 0 || put_text(reading, &name, node->name, strlen(node->name)) ||
	    put_text(reading, &image, node->image_base, strlen(node->image_base)))
		return -ENOMEM;
	reading->places[i] = kb_diff_table_place(reading->table, (uint32_t)parent, name, image,
						 node->kernel);
	return reading->places[i];
}

static int name_chain(void *context, uint32_t i, struct kb_diff_what *what)
{
	struct kb_diff_reading *reading = context;
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
	struct kb_diff_reading *reading = context;
	struct kb_text name = { 0 };
	char number[24];

	if (reading->state_cores[i])
		name = kb_idle_states_name(&reading->states, reading->state_cores[i] - 1,
					   (int)i - 1);
	snprintf(number, sizeof(number), i ? "state %u" : "unknown state", i - 1);
	if (!name.length)
		name = kb_text(number);
	return put_text(reading, &what->name, name.data, name.length);
}

static int name_handler(void *context, uint32_t i, struct kb_diff_what *what)
{
	struct kb_diff_reading *reading = context;
	const uint64_t *row = kb_table_row(&reading->origins, i);
	struct kb_origin origin = kb_origin_of(row[0]);
	char name[KB_ORIGIN_NAME];

	kb_origin_name(reading->trace, &origin, row[1], name, sizeof(name));
	return put_text(reading, &what->name, name, strlen(name));
}

static int name_object(void *context, uint32_t i, struct kb_diff_what *what)
{
	const struct kb_diff_reading *reading = context;
	const uint64_t *row = kb_table_row(&reading->objects, i);

	what->name = (const char *)(uintptr_t)*row;
	return 0;
}

/* ---- cells ---- */

/*
 * There may be very many chains, and nearly all of them are too small to be compared. They are part
 * of the tree without a row.
 */
static int put_small(struct kb_diff_reading *reading, struct kb_diff_set *set, bool waits)
{
	const struct kb_diff_capture *capture = reading->capture;
	bool divide = capture->per_second && capture->seconds > 0;

	for (uint32_t i = 0; i < set->nr; i++) {
		struct kb_sliced *row = &set->rows[i];
		struct kb_diff_place *place;
		int64_t number;

		if (!row->events || row->sum >= KB_DIFF_SMALL * set->sum)
			continue;
		number = place_of(reading, i);
		if (number < 0)
			return (int)number;
		place = kb_table_row(&reading->table->places, (uint32_t)number);
		place->rest[waits][capture->side] += divide ? row->sum / capture->seconds : row->sum;
		row->events = 0;
	}
	return 0;
}

static int put_tree(struct kb_diff_reading *reading, const struct kb_diff_cells *cells,
		    struct kb_calltree *tree, struct kb_diff_set *set,
		    enum kb_diff_measure measure)
{
	const struct kb_diff_what what = { .measure = measure, .by = KB_DIFF_CHAIN };
	const uint32_t *order;
	uint32_t nr;
	int ret;

	reading->nodes = kb_calltree_finish(tree, true, &nr, &order);
	reading->places = calloc((size_t)nr + 1, sizeof(*reading->places));
	ret = !reading->nodes || !reading->places ? -ENOMEM :
	      put_small(reading, set, measure == KB_DIFF_WAIT) ?:
	      kb_diff_put_set(cells, set, what, false, name_chain, reading);
	free(reading->places);
	reading->places = NULL;
	return ret;
}

static int put_times(struct kb_diff_reading *reading, const struct kb_diff_cells *cells)
{
	const struct kb_diff_what cpu_task = { .measure = KB_DIFF_CPU, .by = KB_DIFF_TASK };
	const struct kb_diff_what cpu_symbol = { .measure = KB_DIFF_CPU, .by = KB_DIFF_SYMBOL };
	const struct kb_diff_what wait_task = { .measure = KB_DIFF_WAIT, .by = KB_DIFF_TASK };
	const struct kb_diff_what object = { .measure = KB_DIFF_WAIT, .by = KB_DIFF_OBJECT };
	const struct kb_diff_what idle = { .measure = KB_DIFF_IDLE, .by = KB_DIFF_STATE };
	const struct kb_diff_what irq = { .measure = KB_DIFF_IRQ, .by = KB_DIFF_HANDLER };
	const struct kb_diff_what whole = { .measure = KB_DIFF_TIME };
	const struct kb_diff_set *tasks = reading->has_switches ? &reading->cpu_task :
								  &reading->sampled_task;
	struct kb_diff_cell length = {
		.capture = reading->capture->number,
		.value = reading->capture->ns,
		.weight = reading->capture->ns,
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
	       kb_diff_put_set(cells, &reading->wait_object, object, false, name_object, reading) ?:
	       kb_diff_put_set(cells, &reading->idle, idle, true, name_state, reading) ?:
	       kb_diff_put_set(cells, &reading->irq, irq, true, name_handler, reading);
}

/* How long tasks that could run did not is known only with the wakeups. */
static int put_delays(struct kb_diff_reading *reading, const struct kb_diff_cells *cells)
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

static int put_counters(struct kb_diff_reading *reading, const struct kb_diff_cells *cells)
{
	uint32_t cycles = kb_names_find(reading->names, "cycles", "cpu-cycles");
	uint32_t instructions = kb_names_find(reading->names, "instructions", "inst_retired");
	struct kb_diff_what what = { .measure = KB_DIFF_COUNTER };
	int ret = 0;

	for (uint32_t i = 0; i < reading->nr_counters && !ret; i++) {
		struct kb_text name = kb_names_counter(reading->names, i);

		/* the CPU time says what a clock says; of a turn others are not known */
		if (kb_cputime_is_clock(name) || kb_rotated_has(reading->rotated, i))
			continue;
		ret = put_text(reading, &what.counter, name.data, name.length);
		what.by = KB_DIFF_TASK;
		ret = ret ?: kb_diff_put_set(cells, &reading->by_task[i], what, true, name_task,
					     reading);
		what.by = KB_DIFF_SYMBOL;
		ret = ret ?: kb_diff_put_set(cells, &reading->by_symbol[i], what, false,
					     name_symbol, reading);
	}
	if (ret || cycles >= reading->nr_counters || instructions >= reading->nr_counters ||
	    kb_rotated_has(reading->rotated, cycles) ||
	    kb_rotated_has(reading->rotated, instructions))
		return ret;
	what = (struct kb_diff_what){ .measure = KB_DIFF_IPC, .by = KB_DIFF_TASK };
	ret = kb_diff_put_ratios(cells, &reading->by_task[instructions], &reading->by_task[cycles],
				 what, true, name_task, reading);
	what.by = KB_DIFF_SYMBOL;
	return ret ?: kb_diff_put_ratios(cells, &reading->by_symbol[instructions],
					 &reading->by_symbol[cycles], what, false, name_symbol,
					 reading);
}

int kb_diff_put(struct kb_diff_reading *reading)
{
	const struct kb_diff_cells cells = {
		.table = reading->table,
		.capture = reading->capture,
		.slicing = &reading->slicing,
		.last = reading->until,
	};

	return put_times(reading, &cells) ?: put_delays(reading, &cells) ?:
	       put_counters(reading, &cells);
}
