// SPDX-License-Identifier: MIT
/*
 * Pieces of time that wait for the end of a call are compared with a list that keeps all of them.
 * Few ones are told apart exactly. Of many, none is lost, given twice, or given to what it is
 * not.
 */
#include <string.h>

#include "analysis/classes/undecided.h"
#include "analysis/time/gaps.h"

#include "../lib/random.h"
#include "../lib/tap.h"

#define PIECES	(3 * KB_UNDECIDED_MOST)
#define ENDS	60

struct sums {
	uint64_t ns[KB_CLASSES];
};

static struct model {
	struct kb_piece pieces[PIECES];
	bool in_call[PIECES], in_doubt[PIECES];
	uint32_t nr;
} model;

static int take(void *context, uint32_t core, uint32_t group, uint64_t ns,
		const struct kb_decision *is)
{
	struct sums *given = context;

	(void)core;
	(void)group;
	given->ns[is->kind] += ns;
	return 0;
}

static uint64_t all_of(const struct sums *sums)
{
	uint64_t all = 0;

	for (unsigned int i = 0; i < KB_CLASSES; i++)
		all += sums->ns[i];
	return all;
}

/*
 * A call began at @from; what was in front of it is the program's, unless it was in another call.
 */
static struct sums decide(int64_t from)
{
	struct sums sums = { { 0 } };

	for (uint32_t i = 0; i < model.nr; i++) {
		const struct kb_piece *piece = &model.pieces[i];
		int64_t middle = from < piece->start ? piece->start
				 : from > piece->end ? piece->end
						     : from;

		sums.ns[KB_CLASS_CALL] += (uint64_t)(piece->end - middle);
		sums.ns[model.in_doubt[i]  ? KB_CLASS_RUNNING
			: model.in_call[i] ? KB_CLASS_FAULT
					   : KB_CLASS_USER] += (uint64_t)(middle - piece->start);
	}
	model.nr = 0;
	return sums;
}

static int64_t add_pieces(struct kb_undecided *undecided, const struct kb_decider *decider,
			  int64_t now, uint32_t nr)
{
	bool in_call = false;

	for (; model.nr < nr; model.nr++) {
		struct kb_piece *piece = &model.pieces[model.nr];

		if (!random_below(nr)) {
			kb_undecided_doubt(undecided);
			memset(model.in_doubt, true, model.nr);
			in_call = false;
		}
		if (!in_call && !random_below(nr)) {
			kb_undecided_in_call(undecided);
			in_call = true;
		}
		*piece = (struct kb_piece){
			.start = now, .end = now + 1 + random_below(20), .core = random_below(3),
		};
		model.in_call[model.nr] = in_call;
		model.in_doubt[model.nr] = false;
		now = piece->end + random_below(5);
		if (kb_undecided_add(undecided, piece, decider))
			exit(1);
	}
	return now;
}

/* Whether all ends give what is right; @exactly: or else a part of it, and that it is not told. */
static bool play(uint32_t most, bool exactly)
{
	const struct kb_decision call = { .kind = KB_CLASS_CALL }, user = { .kind = KB_CLASS_USER };
	const struct kb_decision other = { .kind = KB_CLASS_FAULT };
	struct kb_undecided undecided = { .in_call = false };
	struct sums given, right;
	const struct kb_decider decider = { take, &given };
	int64_t begin = 0, now = 0, from;
	bool good = true;

	for (unsigned int end = 0; end < ENDS && good; end++) {
		given = (struct sums){ { 0 } };
		now = add_pieces(&undecided, &decider, now, 1 + random_below(most));
		from = begin + random_below((uint32_t)(now - begin) + 1);
		right = decide(from);
		good = !kb_undecided_take(&undecided, from, &call, &decider) &&
		       !kb_undecided_end(&undecided, &user, &other, &decider) &&
		       all_of(&given) == all_of(&right);
		for (unsigned int i = 0; i < KB_CLASSES; i++)
			good &= given.ns[i] == right.ns[i] ||
				(!exactly && (given.ns[i] < right.ns[i] || i == KB_CLASS_RUNNING));
		begin = now;
	}
	kb_undecided_release(&undecided);
	return good;
}

static bool gaps_are_measured(void)
{
	struct kb_gap rows[] = { { 10, 20 }, { 30, 31 }, { 50, 80 } };
	uint64_t before[] = { 0, 10, 11 };
	const struct kb_gaps gaps = { .rows = rows, .nr = 3, .before = before }, none = { 0 };
	bool good = !kb_gaps_ns(&none, -5, 5);

	for (int64_t from = 0; from < 100; from++) {
		uint64_t ns = 0;

		for (int64_t until = from; until < 100; until++) {
			good &= kb_gaps_ns(&gaps, from, until) == ns;
			ns += kb_gaps_overlap(&gaps, until, until + 1);
		}
	}
	return good;
}

int main(void)
{
	random_start();
	tap_ok(play(50, true) && play(KB_UNDECIDED_MOST, true),
	       "pieces_before_a_call_are_told_from_those_of_it");
	tap_ok(play(PIECES, false), "more_pieces_than_are_kept_are_never_guessed");
	tap_ok(gaps_are_measured(), "the_gaps_of_a_time_are_measured");
	return tap_done();
}
