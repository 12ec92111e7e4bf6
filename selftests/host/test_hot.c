// SPDX-License-Identifier: MIT
/* The table of samples, beside one that is kept in plain arrays. */
#include <stdlib.h>

#include "../lib/random.h"
#include "../lib/tap.h"
#include "analysis/samples/hot.h"
#include "written.h"

#define CORES		2U
#define COUNTERS	3U	/* of each core */
#define TASKS		7U
#define SYMBOLS		900U
#define SAMPLES		60000U
#define DEPTH		6U

struct expected {
	uint64_t samples, weight, children, counters[COUNTERS];
	uint64_t last;
};

static struct kb_barman *open_capture(void)
{
	struct written capture = written_begin(&(struct kb_barman_layout) {
		.size = sizeof(struct kb_barman_layout),
		.max_cores = CORES, .max_pmu_counters = COUNTERS, .max_string_table_length = 64 });
	uint32_t types[COUNTERS] = { 10, 11, 12 }, core;

	for (core = 0; core < CORES; core++)
		if (kb_barman_writer_pmu(capture.writer, core, &(struct kb_pmu) {
			.num_counters = COUNTERS, .counter_types = types }))
			abort();
	return written_open(&capture);
}

static char names[SYMBOLS][16];

static struct kb_frame frame_of(uint32_t symbol)
{
	return (struct kb_frame) {
		.symbol = {
			.name = names[symbol], .image = "/image", .image_base = "image",
			.id = symbol,
		},
		.file = "",
	};
}

/* One sample with its callers, to both tables and to the arrays. */
static void add_sample(struct kb_hot *hot, struct kb_hot *twin, struct expected expected[TASKS][SYMBOLS],
		       uint64_t number)
{
	uint64_t counters[COUNTERS] = { random_below(1000) + 1, random_below(1ULL << 40), KB_COUNTER_INVALID };
	uint32_t task = random_below(TASKS), depth = random_below(DEPTH), i, symbol = 0;
	const struct kb_event event = {
		.type = KB_EVENT_SAMPLE, .task_id = task + 1, .core = random_below(CORES),
		.timestamp = number,
		.sample = { .has_pc = true, .nr_counters = COUNTERS, .counters = counters },
	};
	struct kb_frame frame;

	for (i = 0; i <= depth; i++) {
		struct expected *row;

		/* recursion now and then */
		symbol = !i || random_below(4) ? random_below(SYMBOLS) : symbol;
		row = &expected[task][symbol];
		frame = frame_of(symbol);
		if (i ? kb_hot_add_caller(hot, &event, &frame) ?:
			kb_hot_add_caller(twin, &event, &frame) :
			kb_hot_add(hot, &event, &frame) ?: kb_hot_add(twin, &event, &frame))
			abort();
		if (row->last != number)
			row->children += counters[0];
		row->last = number;
		if (i)
			continue;
		row->samples++;
		row->weight += counters[0];
		row->counters[0] += counters[0];
		row->counters[1] += counters[1];
	}
}

static unsigned int count_wrong(struct kb_hot *hot, uint32_t nr,
				struct expected expected[TASKS][SYMBOLS])
{
	unsigned int wrong = 0, id;
	uint32_t i;

	for (i = 0; i < nr; i++) {
		const struct kb_sample_row row = kb_hot_row(hot, i);
		struct expected *own = &expected[row.task_id - 1][atoi(row.symbol)];

		wrong += row.samples != own->samples || row.weight != own->weight ||
			 row.children != own->children;
		for (id = 0; id < COUNTERS; id++)
			wrong += kb_hot_counter(hot, &row, id) != own->counters[id];
		wrong += i && kb_hot_row(hot, i - 1).children < row.children;
		own->last = 0;		/* found */
	}
	for (i = 0; i < TASKS * SYMBOLS; i++)
		wrong += expected[i / SYMBOLS][i % SYMBOLS].last != 0;
	return wrong;
}

/* Samples of few rows and of many, the last one of each row partial. */
static void test_partial(const struct kb_tasks *tasks, const struct kb_names *kb_names)
{
	uint64_t counters[COUNTERS] = { 10, 3, KB_COUNTER_INVALID };
	struct kb_event event = {
		.type = KB_EVENT_SAMPLE, .task_id = 1,
		.sample = { .has_pc = true, .nr_counters = COUNTERS, .counters = counters },
	};
	struct kb_spots spots = { .lines = NULL };
	struct kb_sample_table table;
	struct kb_sample_row totals;
	struct kb_share share;
	struct kb_spot spot;
	struct kb_hot *hot;
	unsigned int wrong = 0;
	uint32_t i, symbol;

	if (kb_hot_create(&hot, tasks, &spots, KB_SORT_SYMBOL, NULL) ||
	    kb_hot_sum_counters(hot, kb_names))
		abort();
	for (i = 0; i < 3; i++) {
		for (symbol = 0; symbol < SYMBOLS; symbol++) {
			struct kb_frame frame = frame_of(symbol);

			counters[1] = symbol;
			kb_share_take(&share, kb_names, &event, i == 2);
			share.set = i == 2;
			if (kb_spots_note(&spots, &frame, &spot) ||
			    kb_hot_add_share(hot, &event, &spot, &share))
				abort();
		}
	}
	if (!kb_hot_finish(hot, false, &table, &totals))
		abort();
	for (i = 0; i < table.nr; i++) {
		const struct kb_sample_row row = kb_hot_row(hot, i);

		symbol = atoi(row.symbol);
		wrong += row.partial != 1 || kb_hot_counter(hot, &row, 0) != 30 ||
			 kb_hot_counter_of(hot, &row, 0, 1) != 20 ||
			 kb_hot_counter(hot, &row, 1) != 3 * symbol ||
			 kb_hot_counter_of(hot, &row, 1, 1) != 2 * symbol ||
			 kb_hot_counter_of(hot, &row, 2, 1) != 0;
	}
	tap_ok(table.nr == SYMBOLS && !wrong, "whole_counters_are_without_partial_samples");
	tap_is(totals.partial, SYMBOLS, "partial_samples_are_counted");
	kb_hot_destroy(hot);
	kb_spots_release(&spots);
}

/* All rows of @hot are in their order; of @twin a row in the middle is asked for first, then any. */
static unsigned int count_misplaced(struct kb_hot *hot, struct kb_hot *twin, uint32_t nr)
{
	unsigned int wrong = 0;

	for (uint32_t i = 0; i < nr; i++) {
		uint32_t at = i ? random_below(nr) : nr / 2;
		const struct kb_sample_row row = kb_hot_row(hot, at), other = kb_hot_row(twin, at);

		wrong += row.children != other.children || row.task_id != other.task_id ||
			 strcmp(row.symbol, other.symbol) != 0;
	}
	return wrong;
}

int main(void)
{
	static struct expected expected[TASKS][SYMBOLS];
	struct kb_barman *barman = open_capture();
	struct kb_spots spots = { .lines = NULL };
	struct kb_sample_table table;
	struct kb_sample_row totals;
	struct kb_tasks *tasks;
	struct kb_names *kb_names;
	struct kb_hot *hot, *twin;
	uint64_t n;

	random_start();
	if (kb_tasks_create(&tasks, barman) || kb_names_create(&kb_names, barman, tasks, NULL) ||
	    kb_hot_create(&hot, tasks, &spots, KB_SORT_TASK | KB_SORT_IMAGE | KB_SORT_SYMBOL |
			  KB_SORT_CALLERS, NULL) ||
	    kb_hot_create(&twin, tasks, &spots, KB_SORT_TASK | KB_SORT_IMAGE | KB_SORT_SYMBOL |
			  KB_SORT_CALLERS, NULL) ||
	    kb_hot_sum_counters(hot, kb_names))
		abort();
	for (n = 0; n < SYMBOLS; n++)
		snprintf(names[n], sizeof(names[n]), "%u", (unsigned int)n);
	for (n = 1; n <= SAMPLES; n++)
		add_sample(hot, twin, expected, n);
	if (!kb_hot_finish(twin, false, &table, &totals) ||
	    !kb_hot_finish(hot, false, &table, &totals))
		abort();
	tap_is(totals.samples, SAMPLES, "no_sample_stays_behind");
	tap_ok(table.nr > 1000, "there_are_more_rows_than_are_near");
	tap_is(count_wrong(hot, table.nr, expected), 0, "rows_have_the_sums_of_their_samples");
	tap_is(count_misplaced(hot, twin, table.nr), 0, "rows_are_in_order_whichever_is_asked_for_first");
	kb_hot_destroy(hot);
	kb_hot_destroy(twin);
	test_partial(tasks, kb_names);
	kb_names_destroy(kb_names);

	if (kb_hot_create(&hot, tasks, &spots, KB_SORT_TID, NULL) ||
	    !kb_hot_finish(hot, false, &table, &totals))
		abort();
	tap_ok(!table.nr && !totals.samples, "without_samples_there_are_no_rows");
	kb_hot_destroy(hot);
	kb_spots_release(&spots);
	kb_tasks_destroy(tasks);
	kb_barman_close(barman);
	return tap_done();
}
