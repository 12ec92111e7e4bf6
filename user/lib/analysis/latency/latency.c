// SPDX-License-Identifier: MIT
/*
 * One walk over the capture, whose tiles go first to the history of their CPU and then to all
 * analyses. Memory use grows with tasks, names and CPUs, not with records.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <kbarman/latency.h>

#include "analysis/facts/idle_states.h"
#include "analysis/latency/halts.h"
#include "analysis/latency/interrupts.h"
#include "analysis/latency/late_waits.h"
#include "analysis/latency/wakeups.h"
#include "analysis/trace/parts.h"
#include "base/array.h"
#include "base/options.h"

struct latency {
	struct kb_latency shown;	/* the results; the first member */
	struct kb_latency_options how;
	struct kb_wanted wanted;
	struct kb_trace *trace;
	uint32_t max_cores;

	struct kb_gaps gaps;
	struct kb_tiles *tiles;
	struct kb_history *history;
	struct kb_wakeups *wakeups;
	struct kb_interrupts *interrupts;
	struct kb_idle_states states;
	struct kb_halting *halting;
	struct kb_cpu_tiles *cpus;
	uint64_t last_timestamp;	/* ticks */
	int ended;			/* what the last step of the walk said */
};

static int no_memory(struct kb_error *err)
{
	return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
}

static int prepare(struct latency *latency, struct kb_error *err)
{
	int ret = kb_trace_rewind(latency->trace, err) ?:
		  kb_wanted_init(&latency->wanted, latency->trace, latency->how.filter, err);

	if (ret)
		return ret;
	latency->max_cores = kb_trace_header(latency->trace)->max_cores;
	if (kb_idle_states_create(&latency->states, kb_trace_header(latency->trace)))
		return no_memory(err);
	return kb_gaps_read(&latency->gaps, latency->trace, err);
}

static int create_parts(struct latency *latency, kb_late_take take, void *context,
			struct kb_error *err)
{
	struct kb_wakeups_parts parts;

	latency->cpus = calloc((size_t)latency->max_cores + 1, sizeof(*latency->cpus));
	if (!latency->cpus || kb_tiles_create(&latency->tiles, latency->trace, err) ||
	    kb_history_create(&latency->history, latency->max_cores) ||
	    kb_interrupts_create(&latency->interrupts, &latency->wanted) ||
	    kb_halting_create(&latency->halting, &latency->wanted, &latency->states))
		return no_memory(err);
	parts = (struct kb_wakeups_parts){
		.wanted = &latency->wanted,
		.tiles = latency->tiles,
		.history = latency->history,
		.gaps = &latency->gaps,
		.take = take,
		.context = context,
	};
	return kb_wakeups_create(&latency->wakeups, &parts) ? no_memory(err) : 0;
}

static void destroy(struct latency *latency)
{
	kb_wakeups_destroy(latency->wakeups);
	kb_halting_destroy(latency->halting);
	kb_interrupts_destroy(latency->interrupts);
	kb_history_destroy(latency->history);
	kb_tiles_destroy(latency->tiles);
	kb_idle_states_release(&latency->states);
	kb_gaps_release(&latency->gaps);
	free(latency->cpus);
	free(latency);
}

/* ---- the walk ---- */

static int add_tile(struct latency *latency, const struct kb_tile *tile)
{
	struct kb_cpu_tiles *cpu = &latency->cpus[tile->core];
	int64_t start = kb_wanted_nearest(&latency->wanted, tile->start);

	uint64_t ns = (uint64_t)kb_wanted_nearest(&latency->wanted, tile->end) - (uint64_t)start;

	if (!cpu->seen) {
		cpu->seen = true;
		cpu->first = cpu->last = start;
	}
	/* Tiles are in a row. But the wanted time moves if a record comes that is before all others. */
	cpu->last = (int64_t)((uint64_t)cpu->last + ns);
	cpu->ns[tile->kind] += ns;
	return kb_history_add(latency->history, tile) ?:
	       kb_interrupts_add(latency->interrupts, tile, latency->last_timestamp) ?:
	       kb_halting_add(latency->halting, tile);
}

static void count_record(struct latency *latency, const struct kb_event *event)
{
	struct kb_latency *shown = &latency->shown;
	uint8_t what = event->type == KB_EVENT_CUSTOM_COUNTER ? event->custom_counter.what : 0;

	shown->records++;
	shown->whats[what < ARRAY_SIZE(shown->whats) ? what : 0]++;
	latency->last_timestamp = event->timestamp;
}

static int add_record(struct latency *latency, const struct kb_walk *walk)
{
	struct kb_tile tiles[KB_TILES_MOST];
	int nr = kb_tiles_feed(latency->tiles, walk, tiles), i, ret = nr < 0 ? nr : 0;

	count_record(latency, &walk->event);
	for (i = 0; i < nr && !ret; i++)
		ret = add_tile(latency, &tiles[i]);
	return ret ?: kb_wakeups_feed(latency->wakeups, walk) ?:
	       kb_interrupts_feed(latency->interrupts, walk) ?:
	       kb_halting_feed(latency->halting, walk, kb_wakeups_woken(latency->wakeups));
}

static int read_all(struct latency *latency, struct kb_error *err)
{
	const struct kb_walk *walk;
	struct kb_tile tile;
	int ret = 0;

	while (!ret && (latency->ended = kb_trace_next(latency->trace, &walk, err)) > 0)
		ret = add_record(latency, walk);
	while (!ret && kb_tiles_end(latency->tiles, &tile))
		ret = add_tile(latency, &tile);
	return ret || latency->ended == -ENOMEM ? no_memory(err) : 0;
}

/* ---- the results ---- */

static int finish(struct latency *latency, struct kb_error *err)
{
	struct kb_latency *shown = &latency->shown;
	uint32_t i;

	if (kb_wakeups_finish(latency->wakeups, shown) ||
	    kb_interrupts_finish(latency->interrupts, shown) ||
	    kb_halting_finish(latency->halting, shown))
		return no_memory(err);
	for (i = 0; i < latency->max_cores; i++) {
		shown->nr_cores += latency->cpus[i].seen;
		latency->cpus[i].seen &= kb_wanted_cpu(&latency->wanted, i);
	}
	shown->cpus = latency->cpus;
	shown->duration_ns = kb_trace_duration(latency->trace);
	shown->damaged = kb_trace_is_damaged(latency->trace, latency->ended, err);
	return 0;
}

int kb_latency_create(const struct kb_latency **out, struct kb_trace *trace,
		      const struct kb_latency_options *options, struct kb_error *err)
{
	struct latency *latency = calloc(1, sizeof(*latency));
	int ret;

	if (!latency)
		return no_memory(err);
	latency->trace = trace;
	ret = KB_OPTIONS(&latency->how, options, err) ?: prepare(latency, err) ?:
	      create_parts(latency, NULL, NULL, err) ?: read_all(latency, err) ?: finish(latency, err);
	if (ret) {
		destroy(latency);
		return ret;
	}
	*out = &latency->shown;
	return latency->shown.damaged;
}

struct kb_text kb_latency_state_name(const struct kb_latency *latency, uint32_t core, int state)
{
	const struct latency *whole = (const struct latency *)latency;

	return kb_idle_states_name(&whole->states, core, state);
}

const struct kb_filter *kb_latency_filter(const struct kb_latency *latency)
{
	const struct latency *whole = (const struct latency *)latency;

	return whole->how.filter ? &whole->wanted.filter : NULL;
}

void kb_latency_destroy(const struct kb_latency *latency)
{
	if (latency)
		destroy((struct latency *)latency);	/* NOLINT: it is its first member */
}

/* ---- one by one ---- */

int kb_late_waits_create(struct kb_late_waits **out, struct kb_trace *trace, kb_late_take take,
			 void *context, struct kb_error *err)
{
	struct latency *latency = calloc(1, sizeof(*latency));
	int ret;

	if (!latency)
		return no_memory(err);
	latency->trace = trace;
	ret = prepare(latency, err) ?: create_parts(latency, take, context, err);
	if (ret)
		destroy(latency);
	else
		*out = (struct kb_late_waits *)latency;
	return ret;
}

void kb_late_waits_destroy(struct kb_late_waits *waits)
{
	if (waits)
		destroy((struct latency *)waits);
}

int kb_late_waits_feed(struct kb_late_waits *waits, const struct kb_walk *walk)
{
	return add_record((struct latency *)waits, walk);
}
