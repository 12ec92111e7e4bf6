// SPDX-License-Identifier: MIT
/* The count of what takes turns, and its error, for loads of known phases. */
#include <math.h>
#include <stdlib.h>

#include "analysis/samples/turns.h"

#include "../lib/tap.h"

#define MS	4000		/* of a run */
#define TURN	10		/* ms, on average */
#define RUNS	400

/* What a load does until the end of each ms: it has two rates, which alternate. */
static double done[MS + 1];

static void make_load(unsigned int period, unsigned int fast, double slow_rate)
{
	unsigned int phase = (unsigned int)rand() % period;

	for (unsigned int i = 0; i < MS; i++)
		done[i + 1] = done[i] + ((i + phase) % period < fast ? 1e6 : slow_rate);
}

/* Groups take turns as kbarman stat has them; what one of them counts. */
static struct kb_turns count_in_turns(unsigned int groups)
{
	struct kb_turns turns = { 0 };
	unsigned int at = 0;

	while (at < MS) {
		unsigned int own = (unsigned int)rand() % groups;

		for (unsigned int i = 0; i < groups && at < MS; i++) {
			unsigned int end = at + TURN * 2 / 3 + (unsigned int)rand() % (TURN * 2 / 3 + 1);

			if (i == own && end <= MS)
				kb_turns_add(&turns, done[end] - done[at], end - at);
			at = end;
		}
	}
	return turns;
}

/* In how many of RUNS the truth is within the error. */
static unsigned int within(unsigned int period, unsigned int fast, double slow_rate,
			   unsigned int groups)
{
	unsigned int good = 0;
	double error = 0;

	for (unsigned int i = 0; i < RUNS; i++) {
		struct kb_turns turns;
		struct kb_estimate estimate;

		make_load(period, fast, slow_rate);
		turns = count_in_turns(groups);
		estimate = kb_turns_estimate(&turns, MS);
		good += fabs(estimate.value - done[MS]) <= estimate.error + 1e-6 * done[MS];
		error += estimate.error / done[MS] / RUNS;
	}
	tap_note("%u of %u ms fast, %u groups: %u of %u within the error, of %.1f %%", fast, period,
		 groups, good, RUNS, 100 * error);
	return good;
}

static void known_phases(void)
{
	static const struct { unsigned int period, fast; } loads[] = {
		{ 1000, 500 }, { 137, 40 }, { 23, 12 }, { 30, 10 }, { 60, 30 }, { 20, 10 }, { 7, 3 },
		{ 400, 40 },
	};
	unsigned int bad = 0;

	for (unsigned int i = 0; i < sizeof(loads) / sizeof(loads[0]); i++)
		for (unsigned int groups = 2; groups <= 4; groups++)
			bad += within(loads[i].period, loads[i].fast, 1e5, groups) < RUNS * 95 / 100;
	tap_is(bad, 0, "phases_lie_within_the_error_in_95_of_100_runs");
	tap_ok(within(10, 5, 1e6, 3) == RUNS, "a_steady_load_always_does");
}

static void few_turns(void)
{
	struct kb_turns turns = { 0 };
	struct kb_estimate estimate;

	for (unsigned int i = 1; i < KB_TURNS_MIN; i++)
		kb_turns_add(&turns, 1000, 10);
	estimate = kb_turns_estimate(&turns, 100);
	tap_ok(isinf(estimate.error) && fabs(estimate.value - 10000) < 1e-6,
	       "few_turns_give_a_value_without_an_error");
	kb_turns_add(&turns, 1000, 10);
	estimate = kb_turns_estimate(&turns, 100);
	tap_ok(estimate.error < 10, "and_enough_of_them_one_with_an_error");
}

/* Events that come once in a while, in no turn perhaps. */
static void rare_events(void)
{
	unsigned int good = 0;

	for (unsigned int run = 0; run < RUNS; run++) {
		struct kb_turns turns;
		struct kb_estimate estimate;

		for (unsigned int i = 0; i < MS; i++)
			done[i + 1] = done[i] + (rand() % MS < 2);
		turns = count_in_turns(3);
		estimate = kb_turns_estimate(&turns, MS);
		good += fabs(estimate.value - done[MS]) <= estimate.error;
	}
	tap_note("%u of %u", good, RUNS);
	tap_ok(good >= RUNS * 95 / 100, "rare_events_lie_within_the_error_as_well");
}

static void no_time(void)
{
	struct kb_turns turns = { 0 };
	struct kb_estimate estimate;

	kb_turns_add(&turns, 0, 0);
	estimate = kb_turns_estimate(&turns, 100);
	tap_ok(!(estimate.value > 0 || estimate.value < 0), "what_never_ran_counted_nothing");
}

int main(void)
{
	srand(1);
	known_phases();
	few_turns();
	rare_events();
	no_time();
	return tap_done();
}
