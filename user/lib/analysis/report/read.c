// SPDX-License-Identifier: MIT
/* The records of a capture go to the tables of its report. */
#include <errno.h>

#include <kbarman/chain.h>

#include "analysis/report/inside.h"
#include "analysis/time/waker.h"

/* ---- samples ---- */

int report_begin_counts(struct reading *reading)
{
	reading->carry = kb_carry_create(reading->header->max_cores,
					 kb_names_most_of_core(reading->names));
	if (!reading->carry)
		return -ENOMEM;
	return kb_hot_create(&reading->counts, reading->tasks, &reading->spots, KB_SORT_TID, NULL) ?:
	       kb_hot_sum_counters(reading->counts, reading->names);
}

/* Add the sample to all callers of the sampled function. */
static int add_callers(struct reading *reading, const struct kb_event *event)
{
	uint32_t frame, depth = kb_chain_depth(event), nr, i;
	const struct kb_frame *frames;
	int ret = 0;

	for (frame = 0; frame < depth && !ret; frame++) {
		nr = kb_symbolizer_frames(reading->symbolizer, event->task_id, event->timestamp,
					  kb_chain_lookup(event, frame), &frames);
		for (i = frame ? 0 : 1; i < nr && !ret; i++)
			ret = kb_hot_add_caller(reading->by_sort, event, &frames[i]);
	}
	return ret;
}

/* Were the cycles and instructions of the sample not both read? */
static bool is_half_read(const struct reading *reading, const struct kb_event *event)
{
	uint32_t i, id, nr, found = 0;

	if (reading->cycles == UINT32_MAX && reading->instructions == UINT32_MAX)
		return false;
	nr = kb_names_of_core(reading->names, event->core);
	for (i = 0; i < nr && i < event->sample.nr_counters; i++) {
		id = kb_names_counter_id(reading->names, event->core, i);
		if (id != reading->cycles && id != reading->instructions)
			continue;
		if (event->sample.counters[i] == KB_COUNTER_INVALID)
			return true;
		found++;
	}
	/* Cores of several kinds: this one counts only one of the two. */
	return found == 1 && reading->cycles != UINT32_MAX && reading->instructions != UINT32_MAX;
}

static bool has_all_counters(const struct kb_event *event, uint32_t nr)
{
	uint32_t i;

	for (i = 0; i < nr && event->sample.counters[i] != KB_COUNTER_INVALID;)
		i++;
	return i == nr;
}

/* Nearly every sample of a core has all its counters: what is the same of these is remembered. */
static void take_share(struct reading *reading, const struct kb_event *event, bool partial,
		       struct kb_share *share)
{
	bool in_table = event->core < reading->header->max_cores;
	struct full_share *full = &reading->full[in_table ? event->core : 0];
	bool is_full = in_table && !partial && event->sample.nr_counters &&
		       event->sample.nr_counters == (full->known ? full->share.nr_counters :
						     kb_names_of_core(reading->names, event->core)) &&
		       has_all_counters(event, event->sample.nr_counters);

	if (is_full && full->known) {
		*share = full->share;
		share->weight = event->sample.counters[0];
		share->counters = event->sample.counters;
		return;
	}
	kb_share_take(share, reading->names, event, partial || is_half_read(reading, event));
	share->set = (uint8_t)kb_count_sets_find(reading->sets, event, partial);
	if (is_full)
		*full = (struct full_share) { *share, true };
}

/* Where the sample fell. Returns 0 or -ENOMEM. */
static int find_spot(struct reading *reading, const struct kb_event *event, struct kb_spot *spot)
{
	const struct kb_ahead *ahead = kb_sample_queue_ahead(&reading->samples, event);
	const struct kb_frame *frames;

	if (!ahead) {
		kb_symbolizer_frames(reading->symbolizer, event->task_id, event->timestamp,
				     event->sample.pc, &frames);
		return kb_spots_note(&reading->spots, frames, spot);
	}
	*spot = (struct kb_spot) { kb_symbolizer_arrive_id(reading->symbolizer, ahead), 0, false };
	if (kb_spots_has(&reading->spots, spot->symbol))
		return 0;
	kb_symbolizer_arrive(reading->symbolizer, event->task_id, event->timestamp,
			     event->sample.pc, ahead, &frames);
	return kb_spots_note(&reading->spots, frames, spot);
}

static int count_sample(struct reading *reading, const struct kb_event *event, bool partial)
{
	struct kb_share share;
	struct kb_spot spot;
	int ret;

	take_share(reading, event, partial, &share);
	ret = find_spot(reading, event, &spot) ?:
	      kb_hot_add_share(reading->by_sort, event, &spot, &share) ?:
	      kb_hot_add_share(reading->by_tid, event, &spot, &share);
	if (!ret && reading->how.children)
		ret = add_callers(reading, event);
	if (!ret && reading->tree)
		ret = kb_calltree_add(reading->tree, event, reading->symbolizer);
	return ret;
}

/* What every sample says of its task's counters, with PC or without. */
static int add_counts(struct reading *reading, const struct kb_event *event, bool partial)
{
	static const struct kb_spot nowhere = { .symbol = KB_SPOT_NOWHERE };
	struct kb_share share;

	take_share(reading, event, partial, &share);
	return kb_hot_add_share(reading->counts, event, &nowhere, &share);
}

static int add_sample(struct reading *reading, const struct kb_event *event, bool partial,
		      bool wanted)
{
	struct kb_event carried;
	int ret;

	/* Of another writer, the first sample tells. */
	if (!event->sample.has_pc && !reading->counts &&
	    reading->shown.events[KB_EVENT_SAMPLE] == 1 && report_begin_counts(reading))
		return -ENOMEM;
	ret = wanted && reading->counts ? add_counts(reading, event, partial) : 0;
	if (!event->sample.has_pc) {
		reading->shown.samples_without_pc++;
		if (reading->carry)
			kb_carry_add(reading->carry, event);
		return ret;
	}
	if (reading->carry) {
		carried = *event;
		kb_carry_take(reading->carry, &carried);
		event = &carried;
	}
	if (ret || !wanted) {
		reading->shown.filtered += !wanted;
		return ret;
	}
	/* There are few waits, and their order in the queue does not matter. */
	if (partial)
		return count_sample(reading, event, true);
	event = kb_sample_queue_put(&reading->samples, reading->symbolizer, event);
	return event ? count_sample(reading, event, false) : 0;
}

/* ---- all records ---- */

static void see_core(struct kb_report *shown, struct report_core *core, uint64_t timestamp)
{
	shown->nr_cores += !core->seen;
	core->seen = true;
	shown->backwards += timestamp < core->latest;
	core->latest = timestamp;
}

static int add_event(struct reading *reading, const struct kb_walk *walk)
{
	const struct kb_event *event = &walk->event;
	struct kb_report *shown = &reading->shown;
	unsigned int i;
	bool partial, wanted;
	int ret = 0;

	shown->records++;
	shown->events[event->type]++;
	if (event->core < reading->header->max_cores)
		see_core(shown, &reading->cores[event->core], event->timestamp);
	if (event->timestamp > shown->last_timestamp && event->type != KB_EVENT_UNKNOWN &&
	    (!reading->filters || !kb_wanted_is_behind(&reading->wanted, walk->ns)))
		shown->last_timestamp = event->timestamp;
	partial = kb_stops_feed(reading->stops, event, walk->ns);
	for (i = 0; i < walk->nr_slices && !ret; i++) {
		ret = kb_sched_add(reading->sched, &walk->slices[i],
				   event->timestamp < shown->last_timestamp ?
				   event->timestamp : shown->last_timestamp);
		if (!ret && event->type == KB_EVENT_TASK_SWITCH)
			ret = kb_offcpu_switch(reading->offcpu, event, &walk->slices[i]);
	}
	ret = ret ?: kb_waker_feed(&reading->tiles, reading->trace, walk, reading->sched);
	if (!ret && reading->last)
		ret = kb_last_add(reading->last, walk);
	wanted = event->type == KB_EVENT_SAMPLE &&
		 (!reading->filters || kb_wanted_record(&reading->wanted, walk));
	if (!ret && reading->rotated)
		ret = kb_rotated_feed(reading->rotated, event, walk->ns, wanted);
	if (!ret && event->type == KB_EVENT_SAMPLE)
		ret = add_sample(reading, event, partial, wanted);
	return ret;
}

/* Whether some records are damaged; *@err says which. */
static bool is_damaged(const struct reading *reading, struct kb_error *err)
{
	const struct kb_error *first;

	if (reading->trace->result < 0)
		return true;
	if (!kb_barman_damage(reading->trace->barman, &first))
		return false;
	if (err)
		*err = *first;
	return true;
}

int report_read(struct reading *reading, struct kb_error *err)
{
	struct kb_trace *trace = reading->trace;
	const struct kb_event *sample;
	struct kb_slice slice;
	int ret = 0;

	while (!ret && trace_next(trace, err) > 0)
		ret = add_event(reading, &trace->walk);
	while (!ret && (sample = kb_sample_queue_take(&reading->samples)))
		ret = count_sample(reading, sample, false);
	while (!ret && kb_trace_end(trace, &slice))
		ret = kb_sched_add(reading->sched, &slice, reading->shown.last_timestamp) ?:
		      (reading->last ? kb_last_slice(reading->last, &slice) : 0);
	if (ret)
		return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
	kb_stops_end(reading->stops, kb_trace_last(trace));
	reading->shown.damaged = is_damaged(reading, err);
	return 0;
}
