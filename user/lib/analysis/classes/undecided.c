// SPDX-License-Identifier: MIT
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/classes/undecided.h"
#include "base/array.h"

#define SUMS_MOST	64U	/* CPUs and names of which there are sums in one list */
#define ROOM_KEPT	64U	/* pieces */

static const struct kb_decision not_told = { .kind = KB_CLASS_RUNNING };

static uint64_t length_of(const struct kb_piece *piece)
{
	return (uint64_t)piece->end - (uint64_t)piece->start;
}

static int give(const struct kb_piece *piece, const struct kb_decision *is,
		const struct kb_decider *decider)
{
	return decider->take(decider->context, piece->core, piece->group, length_of(piece), is);
}

static int give_sums(struct kb_undecided_list *list, const struct kb_decision *is,
		     const struct kb_decider *decider)
{
	int ret = 0;

	for (uint32_t i = 0; i < list->folded.nr && !ret; i++) {
		const struct kb_undecided_sum *sum = &list->folded.sums[i];

		ret = decider->take(decider->context, sum->core, sum->group, sum->ns, is);
	}
	list->folded.nr = 0;
	return ret;
}

/* ---- more pieces than are kept ---- */

static int fold_piece(struct kb_undecided_list *list, const struct kb_piece *piece,
		      const struct kb_decider *decider)
{
	struct kb_undecided_sum *sum;

	for (uint32_t i = 0; i < list->folded.nr; i++) {
		sum = &list->folded.sums[i];
		if (sum->core == piece->core && sum->group == piece->group) {
			sum->ns += length_of(piece);
			return 0;
		}
	}
	if (list->folded.nr == SUMS_MOST)
		return give(piece, &not_told, decider);
	if (!KB_ARRAY_ROOM(list->folded.sums, list->folded.room, (size_t)list->folded.nr + 1))
		return -ENOMEM;
	list->folded.sums[list->folded.nr++] =
		(struct kb_undecided_sum){ piece->core, piece->group, length_of(piece) };
	return 0;
}

/* Fold the older half. */
static int fold(struct kb_undecided_list *list, const struct kb_decider *decider)
{
	uint32_t nr = list->nr / 2;
	int ret = 0;

	if (!list->folded.nr) {
		list->folded.start = list->pieces[0].start;
		list->folded.end = list->pieces[0].end;
		list->folded.in_doubt = false;
	}
	for (uint32_t i = 0; i < nr && !ret; i++) {
		const struct kb_piece *piece = &list->pieces[i];

		list->folded.start =
			piece->start < list->folded.start ? piece->start : list->folded.start;
		list->folded.end = piece->end > list->folded.end ? piece->end : list->folded.end;
		ret = fold_piece(list, piece, decider);
	}
	list->folded.in_doubt |= list->in_doubt;
	list->in_doubt -= list->in_doubt < nr ? list->in_doubt : nr;
	list->nr -= nr;
	memmove(list->pieces, list->pieces + nr, list->nr * sizeof(*list->pieces));
	return ret;
}

int kb_undecided_add(struct kb_undecided *undecided, const struct kb_piece *piece,
		     const struct kb_decider *decider)
{
	struct kb_undecided_list *list = &undecided->lists[undecided->in_call];
	int ret = list->nr == KB_UNDECIDED_MOST ? fold(list, decider) : 0;

	if (ret)
		return ret;
	if (!KB_ARRAY_ROOM(list->pieces, list->room, (size_t)list->nr + 1))
		return -ENOMEM;
	list->pieces[list->nr++] = *piece;
	return 0;
}

/* ---- what they are ---- */

static int take_folded(struct kb_undecided_list *list, int64_t from, const struct kb_decision *is,
		       const struct kb_decider *decider)
{
	if (!list->folded.nr || list->folded.end <= from)
		return 0;
	return give_sums(list, list->folded.start >= from ? is : &not_told, decider);
}

static int take_list(struct kb_undecided_list *list, int64_t from, const struct kb_decision *is,
		     const struct kb_decider *decider)
{
	struct kb_piece part;
	int ret = 0;

	while (list->nr && list->pieces[list->nr - 1].end > from && !ret) {
		struct kb_piece *last = &list->pieces[list->nr - 1];

		part = *last;
		if (part.start < from) {
			part.start = last->end = from;
			return give(&part, is, decider) ?: take_folded(list, from, is, decider);
		}
		list->nr--;
		ret = give(&part, is, decider);
	}
	if (list->in_doubt > list->nr)
		list->in_doubt = list->nr;
	return ret ?: take_folded(list, from, is, decider);
}

int kb_undecided_take(struct kb_undecided *undecided, int64_t from, const struct kb_decision *is,
		      const struct kb_decider *decider)
{
	return take_list(&undecided->lists[1], from, is, decider) ?:
	       take_list(&undecided->lists[0], from, is, decider);
}

static int end_list(struct kb_undecided_list *list, const struct kb_decision *is,
		    const struct kb_decider *decider)
{
	int ret =
		give_sums(list, list->folded.in_doubt || list->in_doubt ? &not_told : is, decider);

	for (uint32_t i = 0; i < list->nr && !ret; i++)
		ret = give(&list->pieces[i], i < list->in_doubt ? &not_told : is, decider);
	list->nr = list->in_doubt = 0;
	if (list->room > ROOM_KEPT) {
		free(list->pieces);
		list->pieces = NULL;
		list->room = 0;
	}
	return ret;
}

int kb_undecided_end(struct kb_undecided *undecided, const struct kb_decision *is,
		     const struct kb_decision *call, const struct kb_decider *decider)
{
	undecided->in_call = false;
	return end_list(&undecided->lists[0], is, decider)
		       ?: end_list(&undecided->lists[1], call, decider);
}

void kb_undecided_in_call(struct kb_undecided *undecided)
{
	undecided->in_call = true;
}

void kb_undecided_doubt(struct kb_undecided *undecided)
{
	undecided->in_call = false;
	for (size_t i = 0; i < ARRAY_SIZE(undecided->lists); i++) {
		undecided->lists[i].in_doubt = undecided->lists[i].nr;
		undecided->lists[i].folded.in_doubt = true;
	}
}

void kb_undecided_release(struct kb_undecided *undecided)
{
	for (size_t i = 0; i < ARRAY_SIZE(undecided->lists); i++) {
		free(undecided->lists[i].pieces);
		free(undecided->lists[i].folded.sums);
	}
}
