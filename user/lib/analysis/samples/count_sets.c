// SPDX-License-Identifier: MIT
/* See count_sets.h. */
#include <stdlib.h>
#include <string.h>

#include "analysis/facts/capture_names.h"
#include "analysis/samples/count_sets.h"

struct kb_count_sets {
	const struct kb_names *names;
	uint32_t nr_words;		/* of a set: a bit for each counter, by id */
	unsigned int nr;
	uint64_t *rows;			/* nr_words each; the last one is for a new set */
};

static uint64_t *row_of(const struct kb_count_sets *sets, unsigned int number)
{
	return sets->rows + (size_t)number * sets->nr_words;
}

struct kb_count_sets *kb_count_sets_create(const struct kb_names *names)
{
	struct kb_count_sets *sets = calloc(1, sizeof(*sets));

	if (!sets)
		return NULL;
	sets->names = names;
	sets->nr_words = kb_names_nr_counters(names) / 64 + 1;
	sets->rows = calloc((size_t)KB_COUNT_SETS * sets->nr_words, sizeof(*sets->rows));
	if (sets->rows)
		return sets;
	kb_count_sets_destroy(sets);
	return NULL;
}

void kb_count_sets_destroy(struct kb_count_sets *sets)
{
	if (!sets)
		return;
	free(sets->rows);
	free(sets);
}

/* The counters of a sample, of which there are @nr, that were read. */
static void take(const struct kb_count_sets *sets, const struct kb_event *event, uint32_t nr,
		 uint64_t *row)
{
	const uint32_t *ids = kb_names_ids(sets->names, event->core);

	memset(row, 0, sets->nr_words * sizeof(*row));
	for (uint32_t i = 0; i < nr; i++)
		if (event->sample.counters[i] != KB_COUNTER_INVALID)
			row[ids[i] / 64] |= UINT64_C(1) << ids[i] % 64;
}

static unsigned int number_of(struct kb_count_sets *sets, const struct kb_event *event, uint32_t nr)
{
	uint64_t *row = row_of(sets, KB_COUNT_SETS - 1);
	unsigned int number = 0;

	take(sets, event, nr, row);
	while (number < sets->nr &&
	       memcmp(row_of(sets, number), row, sets->nr_words * sizeof(*row)) != 0)
		number++;
	if (number == sets->nr && number < KB_COUNT_SETS - 1)
		memcpy(row_of(sets, sets->nr++), row, sets->nr_words * sizeof(*row));
	return number;
}

unsigned int kb_count_sets_find(struct kb_count_sets *sets, const struct kb_event *event,
				bool partial)
{
	uint32_t known = kb_names_of_core(sets->names, event->core);
	uint32_t nr = event->sample.nr_counters < known ? event->sample.nr_counters : known;

	return partial || !nr ? KB_COUNT_SETS - 1 : number_of(sets, event, nr);
}

uint32_t kb_count_sets_with(const struct kb_count_sets *sets, const uint32_t *ids, unsigned int nr)
{
	uint32_t with = 0;

	for (unsigned int number = 0; number < sets->nr; number++) {
		const uint64_t *row = row_of(sets, number);
		bool all = true;

		for (unsigned int i = 0; i < nr; i++)
			all = all && row[ids[i] / 64] >> ids[i] % 64 & 1;
		if (all)
			with |= UINT32_C(1) << number;
	}
	return with;
}
