// SPDX-License-Identifier: MIT
/*
 * One pass over the capture feeds all analyses. Memory use grows with tasks and symbols, not with
 * records.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/report/inside.h"
#include "base/options.h"

/* ---- the analyses ---- */

static int take_options(struct reading *reading, const struct kb_report_options *given,
			struct kb_error *err)
{
	struct kb_report_options *how = &reading->how;
	int ret = KB_OPTIONS(how, given, err);

	reading->filters = how->filter;
	if (!how->sort)
		how->sort = KB_SORT_TASK | KB_SORT_IMAGE | KB_SORT_SYMBOL;
	return ret;
}

static int take_parts(struct reading *reading, struct kb_error *err)
{
	struct kb_trace *trace = reading->trace;
	int ret = kb_trace_rewind(trace, err);

	if (ret)
		return ret;
	reading->header = kb_trace_header(trace);
	reading->tasks = kb_trace_tasks(trace, err);
	reading->names = reading->tasks ? kb_trace_names(trace, err) : NULL;
	reading->shown.losses = reading->names ? kb_trace_losses(trace, err) : NULL;
	reading->symbolizer = reading->shown.losses ? kb_trace_symbolizer(trace, err) : NULL;
	if (!reading->symbolizer)
		return err && err->code ? err->code : -ENOMEM;
	reading->how.count |= !kb_names_one_weight(reading->names);
	reading->cycles = kb_names_find(reading->names, "cycles", "cpu-cycles");
	reading->instructions = kb_names_find(reading->names, "instructions", "inst_retired");
	return 0;
}

static int create_tables(struct reading *reading, struct kb_error *err)
{
	const struct kb_report_options *how = &reading->how;
	unsigned int apart = how->idle ? 0 : KB_SORT_IDLE;
	const struct kb_tasks *tasks = reading->tasks;

	return kb_stops_create(&reading->stops, reading->header, reading->shown.losses, err) ?:
	       kb_hot_create(&reading->by_sort, tasks, &reading->spots, how->sort | apart |
			     (how->children ? KB_SORT_CALLERS : 0), err) ?:
	       kb_hot_create(&reading->by_tid, tasks, &reading->spots, KB_SORT_TID | apart, err) ?:
	       kb_sched_create(&reading->sched, reading->header->max_cores, err) ?:
	       kb_offcpu_create(&reading->offcpu, kb_trace_barman(reading->trace), tasks,
				reading->symbolizer, reading->sched, err) ?:
	       (how->call_graph ? kb_calltree_create(&reading->tree, tasks, err) : 0);
}

static int take_notes(struct reading *reading, struct kb_error *err)
{
	const struct kb_process_notes *notes = kb_trace_notes(reading->trace, err);

	kb_hot_take_notes(reading->by_sort, notes);
	return notes ? 0 : -ENOMEM;
}

static int prepare(struct reading *reading, struct kb_error *err)
{
	const struct kb_report_options *how = &reading->how;
	int ret = take_parts(reading, err) ?: create_tables(reading, err) ?: take_notes(reading, err) ?:
		  kb_wanted_init(&reading->wanted, reading->trace, how->filter, err);

	if (ret)
		return ret;
	reading->cores = calloc((size_t)reading->header->max_cores + 1, sizeof(*reading->cores));
	reading->full = calloc((size_t)reading->header->max_cores + 1, sizeof(*reading->full));
	reading->sets = kb_count_sets_create(reading->names);
	if (!reading->cores || !reading->full || !reading->sets ||
	    kb_hot_sum_counters(reading->by_sort, reading->names) ||
	    kb_hot_sum_counters(reading->by_tid, reading->names) ||
	    kb_rotated_create(&reading->rotated, reading->header, reading->names) ||
	    (!reading->filters && kb_last_create(&reading->last, reading->trace)) ||
	    (kb_barman_fact(reading->trace->barman, "counts") && report_begin_counts(reading)))
		return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
	/* Their values in a sample, with those carried to it, are not of the same time. */
	if (kb_rotated_has(reading->rotated, reading->cycles) ||
	    kb_rotated_has(reading->rotated, reading->instructions))
		reading->cycles = reading->instructions = UINT32_MAX;
	if (reading->filters) {
		kb_sched_filter(reading->sched, &reading->wanted);
		kb_offcpu_filter(reading->offcpu, kb_wanted_wait, &reading->wanted);
	}
	if (reading->tree && !how->idle)
		kb_calltree_idle_apart(reading->tree);
	return 0;
}

static void destroy(struct reading *reading)
{
	kb_offcpu_destroy(reading->offcpu);
	kb_sched_destroy(reading->sched);
	kb_tiles_destroy(reading->tiles);
	kb_calltree_destroy(reading->tree);
	kb_carry_destroy(reading->carry);
	kb_count_sets_destroy(reading->sets);
	kb_rotated_destroy(reading->rotated);
	kb_hot_destroy(reading->counts);
	kb_hot_destroy(reading->by_tid);
	kb_hot_destroy(reading->by_sort);
	kb_spots_release(&reading->spots);
	kb_stops_destroy(reading->stops);
	kb_last_destroy(reading->last);
	free(reading->stop_rows);
	free(reading->cores);
	free(reading->full);
	free(reading);
}

/* ---- the results ---- */

static bool finish_tree(struct kb_calltree *tree, bool count, struct kb_call_tree *out)
{
	out->nodes = kb_calltree_finish(tree, count, &out->nr, &out->order);
	return out->nodes;
}

static bool finish_samples(struct reading *reading)
{
	struct kb_report *shown = &reading->shown;
	bool count = reading->how.count;
	struct kb_sample_row totals, row;
	uint32_t i;

	if (!kb_hot_finish(reading->by_sort, count, &shown->samples, &shown->totals) ||
	    !kb_hot_finish(reading->by_tid, count, &shown->tasks, &totals) ||
	    (reading->counts && !kb_hot_finish(reading->counts, false, &shown->counts, &totals)) ||
	    (reading->tree && !finish_tree(reading->tree, count, &shown->calls)))
		return false;
	for (i = shown->samples.nr_work; i < shown->samples.nr; i++) {
		row = kb_report_sample(&shown->samples, i);
		shown->idle_samples += row.samples;
		shown->idle_weight += row.weight;
	}
	return true;
}

static bool finish_waits(struct reading *reading)
{
	struct kb_report *shown = &reading->shown;

	shown->sched_tasks = kb_sched_tasks(reading->sched, &shown->nr_sched_tasks);
	shown->cpus = kb_sched_cpu(reading->sched, 0);
	shown->waits = kb_offcpu_longest(reading->offcpu, false, &shown->nr_waits);
	shown->sleeps = kb_offcpu_longest(reading->offcpu, true, &shown->nr_sleeps);
	shown->waiting_has_chains = kb_offcpu_has_chains(reading->offcpu);
	return finish_tree(kb_offcpu_tree(reading->offcpu), false, &shown->waiting);
}

static bool finish_stops(struct reading *reading)
{
	struct kb_report *shown = &reading->shown;
	struct kb_stop stop;

	while (kb_stops_get(reading->stops, shown->nr_stops, &stop))
		shown->nr_stops++;
	reading->stop_rows = calloc((size_t)shown->nr_stops + 1, sizeof(stop));
	for (uint32_t i = 0; reading->stop_rows && i < shown->nr_stops; i++)
		kb_stops_get(reading->stops, i, &reading->stop_rows[i]);
	shown->stops = reading->stop_rows;
	return shown->stops;
}

/* The name of the event that samples; "samples" if the capture has none, or with @count. */
static struct kb_text weight_of(const struct reading *reading)
{
	uint32_t core;

	for (core = 0; core < reading->header->max_cores && !reading->how.count; core++)
		if (reading->cores[core].seen && kb_names_of_core(reading->names, core))
			return kb_names_counter(reading->names,
						kb_names_counter_id(reading->names, core, 0));
	return kb_text("samples");
}

static int finish(struct reading *reading, struct kb_error *err)
{
	if (!finish_samples(reading) || !finish_waits(reading) || !finish_stops(reading) ||
	    (reading->last && kb_last_finish(reading->last, &reading->shown.last)))
		return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
	reading->shown.weight_of = weight_of(reading);
	reading->shown.duration_ns = kb_trace_duration(reading->trace);
	reading->shown.wanted_ns = kb_wanted_span(&reading->wanted, kb_trace_first(reading->trace),
						  kb_trace_last(reading->trace));
	return 0;
}

int kb_report_create(const struct kb_report **out, struct kb_trace *trace,
		     const struct kb_report_options *options, struct kb_error *err)
{
	struct reading *reading = calloc(1, sizeof(*reading));
	int ret;

	if (!reading)
		return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
	reading->trace = trace;
	ret = take_options(reading, options, err) ?: prepare(reading, err) ?:
	      report_read(reading, err) ?: finish(reading, err);
	if (ret) {
		destroy(reading);
		return ret;
	}
	*out = &reading->shown;
	return reading->shown.damaged;
}

void kb_report_destroy(const struct kb_report *report)
{
	if (report)
		destroy((struct reading *)report);	/* NOLINT: it is its first member */
}

const char *kb_report_cgroup(const struct kb_sample_table *table, const struct kb_sample_row *row)
{
	return kb_hot_cgroup(table->hot, row);
}

struct kb_sample_row kb_report_sample(const struct kb_sample_table *table, uint32_t i)
{
	return kb_hot_row(table->hot, i);
}

uint64_t kb_report_counter(const struct kb_sample_table *table, const struct kb_sample_row *row,
			   uint32_t id)
{
	return kb_hot_counter(table->hot, row, id);
}

bool kb_report_has_rotated(const struct kb_report *report)
{
	return ((const struct reading *)report)->rotated;
}

bool kb_report_is_rotated(const struct kb_report *report, uint32_t id)
{
	return kb_rotated_has(((const struct reading *)report)->rotated, id);
}

struct kb_report_count kb_report_rotated(const struct kb_report *report,
					 const struct kb_sample_row *row, uint32_t id)
{
	return kb_rotated_get(((const struct reading *)report)->rotated,
			      row ? row->task_id : KB_ROTATED_ALL, id);
}

bool kb_report_ipc(const struct kb_report *report, const struct kb_sample_table *table,
		   const struct kb_sample_row *row, double *ipc)
{
	const struct reading *reading = (const struct reading *)report;
	const uint32_t ids[] = { reading->cycles, reading->instructions };
	uint64_t cycles;
	uint32_t sets;

	if (reading->cycles == UINT32_MAX || reading->instructions == UINT32_MAX)
		return false;
	if (!row)
		return true;
	sets = kb_count_sets_with(reading->sets, ids, 2);
	cycles = kb_hot_counter_of(table->hot, row, reading->cycles, sets);
	if (cycles)
		*ipc = (double)kb_hot_counter_of(table->hot, row, reading->instructions, sets) / cycles;
	else
		*ipc = row->partial ? NAN : 0;
	return true;
}
