// SPDX-License-Identifier: MIT
/*
 * Cumulative counters. The format's text says that a sample carries deltas. Arm's agent writes
 * the values of the PMU's counters instead. Events always carry deltas.
 *
 * KB_COUNTERS_AUTO assumes deltas in a capture with kbarman.ext=1, because kbarman wrote it. In
 * other captures it examines the samples of the first window, for each counter of each core:
 *
 *	a value below the previous one		a vote for deltas
 *	VOTES_MIN values, never below the previous one, and above it in at least
 *	half of the cases			a vote for cumulative
 *	everything else (too few, constant)	no vote
 *
 * The capture is cumulative if there is a vote for cumulative and none for deltas.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "format/barman/inside.h"

#define VOTES_MIN	8U
#define PROBE_RECORDS	65536U

struct vote {
	uint64_t previous;
	uint32_t values, rises;
	bool falls;
};

static bool count_votes(const struct vote *votes, uint64_t n)
{
	bool cumulative = false;

	for (uint64_t i = 0; i < n; i++) {
		if (votes[i].falls)
			return false;
		if (votes[i].values >= VOTES_MIN && votes[i].rises >= (votes[i].values - 1) / 2)
			cumulative = true;
	}
	return cumulative;
}

static void note(struct vote *vote, uint64_t value)
{
	if (value == KB_COUNTER_INVALID)
		return;
	if (vote->values) {
		vote->rises += value > vote->previous;
		vote->falls |= value < vote->previous;
	}
	vote->values++;
	vote->previous = value;
}

/* Examine the samples of the first window, then rewind. */
static int probe(struct kb_barman *barman, struct vote *votes, struct kb_error *err)
{
	struct kb_event event;
	int ret;

	/* A read from a pipe returns what is there: wait until the pipe has filled the window. */
	barman->probe_end = 1;
	if (barman->nr_segments) {
		uint64_t length = barman->segments[0].end - barman->segments[0].start;
		size_t want = barman->source.window_bytes, got;

		if (length < want)
			want = length;
		if (!kb_source_at(&barman->source, barman->segments[0].start, want, &got, err) &&
		    err->code) {
			ret = err->code;
			goto out;
		}
		barman->probe_end = barman->segments[0].start + got;
	}
	for (uint32_t n = 0; n < PROBE_RECORDS; n++) {
		while (barman->next(barman, &event) == 0) {
			ret = barman_cursor_advance(barman, err);
			if (ret <= 0)
				goto out;
		}
		if (event.type != KB_EVENT_SAMPLE)
			continue;
		for (uint32_t i = 0; i < event.sample.nr_counters; i++)
			note(&votes[barman->counter_index[event.core] + i],
			     event.sample.counters[i]);
	}
	ret = 0;
out:
	barman->probe_end = 0;
	barman_cursor_init(barman);
	return ret;
}

int barman_counters_decide(struct kb_barman *barman, struct kb_error *err)
{
	struct vote *votes;
	int ret;

	barman->decided = true;
	barman->cumulative = false;
	if (barman->how == KB_COUNTERS_AUTO && barman->nr_counters && !barman->header.extended) {
		votes = calloc(barman->nr_counters, sizeof(*votes));
		if (!votes)
			return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "%s: out of memory",
					    barman->source.name);
		ret = probe(barman, votes, err);
		barman->cumulative = count_votes(votes, barman->nr_counters);
		free(votes);
		if (ret < 0)
			return ret;
	} else if (barman->how == KB_COUNTERS_CUMULATIVE) {
		barman->cumulative = true;
	}
	if (barman->cumulative && !barman->counter_state) {
		barman->counter_state = calloc(barman->nr_counters ? barman->nr_counters : 1,
					       sizeof(*barman->counter_state));
		if (!barman->counter_state)
			return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "%s: out of memory",
					    barman->source.name);
	}
	return 0;
}

void barman_counters_reset(struct kb_barman *barman)
{
	if (barman->counter_state)
		memset(barman->counter_state, 0,
		       barman->nr_counters * sizeof(*barman->counter_state));
}

/* The first value of a counter has no predecessor, so its delta is not valid. */
void barman_counters_delta(struct kb_barman *barman, uint32_t core, uint64_t *counters, uint32_t n)
{
	struct barman_series_state *state = barman->counter_state + barman->counter_index[core];

	for (uint32_t i = 0; i < n; i++, state++) {
		uint64_t value = counters[i], delta = value - state->previous;

		if (value == KB_COUNTER_INVALID)
			continue;
		if (!state->known) {
			counters[i] = KB_COUNTER_INVALID;
		} else if (value >= state->previous) {
			counters[i] = delta;
		} else {
			/*
			 * Arm's event counters have 32 bits and wrap. Other counters do not
			 * wrap.
			 */
			counters[i] = state->previous <= UINT32_MAX ? (uint32_t)delta
								    : KB_COUNTER_INVALID;
		}
		state->previous = value;
		state->known = true;
	}
}
