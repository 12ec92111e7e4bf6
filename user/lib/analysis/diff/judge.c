// SPDX-License-Identifier: MIT
/*
 * A value is never known better than to half an event of its row: with a sample more or less it
 * would be another one, even if it happens to be the same in all captures of a side. From one
 * capture a side it is never known better than to ONE_RUN of itself: how much two runs differ shows
 * in no run.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/diff/judge.h"
#include "stats/blocks.h"
#include "stats/many.h"

#define ONE_RUN		0.005
#define EVENTS_LEAST	10	/* of a row, on both sides together */

/* What a side knows of a line. */
struct side {
	uint32_t captures;	/* of the side, */
	uint32_t nr;		/* and those that have the line */
	double sum, variance;	/* of values; from slices */
	double weight, events;
	double squares;		/* of the distances from the mean */
	struct kb_mean mean;
};

struct judged {
	struct kb_diff_row *row;
	double share;		/* of its table */
	struct side sides[2];
};

/* The weight of each table: the sum of its rows, unless there is a total. */
struct whole {
	uint64_t key[2];	/* measure and kind, counter */
	double weight;
};

static double square(double value)
{
	return value * value;
}

/* ---- means ---- */

/* A capture without the line has none of it, but a mean of nothing is not 0. */
static uint32_t values_of(const struct side *side, bool mean)
{
	return mean ? side->nr : side->captures;
}

static void add_cells(const struct kb_diff_judging *judging, const struct kb_diff_line *line,
		      struct side sides[2])
{
	bool mean = kb_diff_is_mean(line->what.measure);

	for (uint32_t i = 0; i < line->nr; i++) {
		const struct kb_diff_cell *cell = &line->cells[i];
		struct side *side = &sides[judging->sides[cell->capture]];

		side->nr++;
		side->sum += cell->value;
		side->variance += cell->variance;
		side->weight += cell->weight;
		side->events += cell->events;
	}
	for (uint32_t i = 0; i < line->nr; i++) {
		const struct kb_diff_cell *cell = &line->cells[i];
		struct side *side = &sides[judging->sides[cell->capture]];

		side->squares += square(cell->value - side->sum / values_of(side, mean));
	}
	for (int i = 0; i < 2 && !mean; i++)
		sides[i].squares += (sides[i].captures - sides[i].nr) *
				    square(sides[i].sum / fmax(sides[i].captures, 1));
}

/* The least variance of a value. */
static double floor_of(const struct side sides[2], bool mean)
{
	double events = sides[0].events + sides[1].events;

	return mean || !(events > 0) ? 0 : square((sides[0].sum + sides[1].sum) / events) / 4;
}

/* The other side has several captures. */
static void borrow(struct side *side, const struct side *other)
{
	side->mean.variance = other->squares / other->mean.freedom;
	side->mean.freedom = other->mean.freedom;
	side->mean.borrowed = true;
}

/* How the two runs go together; nothing if that is not known. */
static struct kb_pair pair_of(const struct kb_diff_line *line)
{
	double blocks[3][KB_BLOCKS_SLICES];

	if (line->nr != 2 || !line->cells[0].blocks || !line->cells[1].blocks)
		return (struct kb_pair){ 0 };
	for (unsigned int i = 0; i < KB_BLOCKS_SLICES; i++) {
		blocks[0][i] = line->cells[0].blocks[i];
		blocks[1][i] = line->cells[1].blocks[i];
		blocks[2][i] = fabs(blocks[0][i]) + fabs(blocks[1][i]);
	}
	return (struct kb_pair){ kb_blocks_covariance(blocks[0], blocks[1]),
				 kb_blocks_effective(blocks[2]) };
}

static void judge_sides(const struct kb_diff_line *line, struct side sides[2])
{
	bool mean = kb_diff_is_mean(line->what.measure), one = sides[0].captures == 1 &&
							       sides[1].captures == 1;
	double least = floor_of(sides, mean);

	for (int i = 0; i < 2; i++)
		sides[i].mean = kb_mean_of(sides[i].sum, sides[i].squares,
					   values_of(&sides[i], mean));
	for (int i = 0; i < 2; i++) {
		struct side *side = &sides[i];
		uint32_t nr = values_of(side, mean);

		if (one && nr && line->what.measure != KB_DIFF_TIME) {
			side->mean.variance = side->variance + square(ONE_RUN * side->sum);
			side->mean.freedom = KB_BLOCKS_FREEDOM;
		} else if (nr == 1 && sides[1 - i].mean.freedom > 0) {
			borrow(side, &sides[1 - i]);
		}
		if (nr)
			side->mean.variance = fmax(side->mean.variance, least / nr);
	}
}

/* ---- rows ---- */

struct kb_contrast kb_diff_row_contrast(const struct kb_diff_row *row, double factor)
{
	const struct kb_mean a = { row->a, row->variances[0], row->freedoms[0], row->one_variance };
	const struct kb_mean b = { row->b, row->variances[1], row->freedoms[1], row->one_variance };

	const struct kb_pair pair = { row->covariance, row->blocks };

	return row->one_each ? kb_contrast_paired(&a, &b, &pair, factor) :
			       kb_contrast(&a, &b, factor);
}

/* The factor nearest to @inside, in the direction of @step, that is no longer likely. */
static double bound(const struct kb_diff_row *row, double level, double inside, double step)
{
	double near = inside, far = inside;
	struct kb_contrast contrast;

	for (int i = 0; i < 64; i++) {
		far = fmax(inside + step, 0);
		contrast = kb_diff_row_contrast(row, far);
		if (kb_contrast_beyond(&contrast) < 1 - level)
			break;
		near = far;
		if (far <= 0)
			return 0;
		step *= 2;
		if (i == 63)
			return INFINITY;
	}
	for (int i = 0; i < 32; i++) {
		double middle = (near + far) / 2;

		contrast = kb_diff_row_contrast(row, middle);
		if (kb_contrast_beyond(&contrast) < 1 - level)
			far = middle;
		else
			near = middle;
	}
	return near;
}

/* All changes with which the values would not be unlikely: Fieller's interval. */
static void find_interval(struct kb_diff_row *row, double level)
{
	double factor = row->b / row->a;

	if (!(row->a > 0) || isinf(row->error))
		return;
	if (!(row->error > 0)) {
		row->low = row->high = row->change;
		return;
	}
	row->low = bound(row, level, factor, -row->error / row->a) - 1;
	row->high = bound(row, level, factor, row->error / row->a) - 1;
}

static void fill_row(struct kb_diff_row *row, const struct kb_diff_line *line,
		     const struct side sides[2])
{
	struct kb_contrast contrast;

	*row = (struct kb_diff_row){
		.measure = line->what.measure,
		.by = line->what.by,
		.counter = line->what.counter ? line->what.counter : "",
		.name = line->what.name ? line->what.name : "",
		.image = line->what.image ? line->what.image : "",
		.kernel = line->what.kernel,
		.node = line->what.node,
		.a = sides[0].mean.value,
		.b = sides[1].mean.value,
		.low = -1,
		.high = INFINITY,
		.p = 1,
		.q = 1,
		.variances = { sides[0].mean.variance, sides[1].mean.variance },
		.freedoms = { sides[0].mean.freedom, sides[1].mean.freedom },
		.one_variance = sides[0].mean.borrowed || sides[1].mean.borrowed,
		.one_each = sides[0].captures == 1 && sides[1].captures == 1,
	};
	if (row->one_each) {
		struct kb_pair pair = pair_of(line);

		row->covariance = pair.covariance;
		row->blocks = pair.blocks;
	}
	row->change = row->a > 0 ? row->b / row->a - 1 : row->b > 0 ? INFINITY : 0;
	contrast = kb_diff_row_contrast(row, 1);
	row->error = contrast.error;
	row->freedom = contrast.freedom;
}

static uint64_t *key_of(const struct kb_diff_row *row, uint64_t key[2])
{
	key[0] = (uint64_t)row->measure << 8 | row->by;
	key[1] = (uintptr_t)row->counter;
	return key;
}

/* ---- which rows are compared ---- */

/* Add up what a table has; its total is a table of its own. */
static int add_wholes(struct kb_table *wholes, const struct judged *judged, uint32_t nr)
{
	uint64_t key[2];

	for (uint32_t i = 0; i < nr; i++) {
		struct whole *whole = kb_table_get(wholes, key_of(judged[i].row, key));

		if (!whole)
			return -ENOMEM;
		whole->weight += judged[i].sides[0].weight / fmax(judged[i].sides[0].captures, 1) +
				 judged[i].sides[1].weight / fmax(judged[i].sides[1].captures, 1);
	}
	return 0;
}

static double share_of(const struct kb_table *wholes, const struct judged *judged)
{
	const struct side *sides = judged->sides;
	double weight = sides[0].weight / fmax(sides[0].captures, 1) +
			sides[1].weight / fmax(sides[1].captures, 1);
	const struct whole *whole;
	uint64_t key[2];

	whole = kb_table_find(wholes, key_of(judged->row, key));
	return whole && whole->weight > 0 ? weight / whole->weight : 0;
}

static bool is_compared(const struct kb_diff_judging *judging, const struct judged *judged)
{
	const struct side *sides = judged->sides;

	if (isinf(judged->row->error) || sides[0].events + sides[1].events < EVENTS_LEAST)
		return false;
	if (kb_diff_is_mean(judged->row->measure) && (!sides[0].nr || !sides[1].nr))
		return false;
	return judged->row->by == KB_DIFF_TOTAL || judged->share >= judging->least;
}

/*
 * Half of the allowance is for the totals, of which there are few. A quarter is for all other rows
 * alike, and a quarter goes where the time goes: what has a larger share of its table gets more. None
 * of this depends on the differences.
 */
static void weigh(struct kb_many *many, uint32_t nr, const struct judged *judged, uint32_t totals)
{
	double shares = 0;

	for (uint32_t i = 0; i < nr; i++)
		if (judged[many[i].number].row->by != KB_DIFF_TOTAL)
			shares += judged[many[i].number].share;
	for (uint32_t i = 0; i < nr; i++) {
		const struct judged *one = &judged[many[i].number];
		double rows = nr, all = totals && totals < nr ? rows / 2 : rows;

		if (one->row->by == KB_DIFF_TOTAL)
			many[i].weight = all / totals;
		else
			many[i].weight = all / 2 / (rows - totals) +
					 (shares > 0 ? all / 2 * one->share / shares : 0);
	}
}

static int compare_all(const struct kb_diff_judging *judging, struct judged *judged,
		       struct kb_diff_row *rows, uint32_t nr)
{
	struct kb_many *many = calloc((size_t)nr + 1, sizeof(*many));
	struct kb_table wholes;
	uint32_t compared = 0, totals = 0;
	int ret = many ? 0 : -ENOMEM;

	kb_table_init(&wholes, sizeof(struct whole), 2);
	ret = ret ?: add_wholes(&wholes, judged, nr);
	for (uint32_t i = 0; i < nr && !ret; i++) {
		struct kb_diff_row *row = &rows[i];
		struct kb_contrast contrast = kb_diff_row_contrast(row, 1);

		judged[i].share = share_of(&wholes, &judged[i]);
		row->compared = is_compared(judging, &judged[i]);
		if (!row->compared)
			continue;
		find_interval(row, judging->level);
		row->p = kb_contrast_beyond(&contrast);
		totals += row->by == KB_DIFF_TOTAL;
		many[compared++] = (struct kb_many){ .p = row->p, .number = i };
	}
	if (!ret) {
		weigh(many, compared, judged, totals);
		kb_many_adjust(many, compared);
	}
	for (uint32_t i = 0; i < compared && !ret; i++) {
		struct kb_diff_row *row = &rows[many[i].number];

		row->q = fmax(many[i].q, row->p);	/* a weight is no reason to be surer */
		row->certain = row->q <= 1 - judging->level;
	}
	kb_table_release(&wholes);
	free(many);
	return ret;
}

/* ---- order ---- */

/* How large the difference is at least, with the level of confidence. */
static double sure(const struct kb_diff_row *row)
{
	double change = row->low > 0 ? row->low : row->high < 0 ? -row->high : 0;

	return row->a > 0 ? change * row->a : row->b;
}

static int compare_doubles(double left, double right)
{
	return (left < right) - (left > right);
}

static int compare_rows(const void *left, const void *right)
{
	const struct kb_diff_row *a = left, *b = right;
	int order;

	if (a->measure != b->measure)
		return a->measure < b->measure ? -1 : 1;
	order = strcmp(a->counter, b->counter);
	if (order)
		return order;
	if (a->by != b->by)
		return a->by < b->by ? -1 : 1;
	if (a->certain != b->certain)
		return a->certain ? -1 : 1;
	order = a->certain ? compare_doubles(sure(a), sure(b)) : 0;
	order = order ? order : compare_doubles(a->a + a->b, b->a + b->b);
	order = order ? order : strcmp(a->name, b->name);
	order = order ? order : strcmp(a->image, b->image);
	return order ? order : (a->node > b->node) - (a->node < b->node);
}

int64_t kb_diff_judge(const struct kb_diff_table *table, const struct kb_diff_judging *judging,
		      struct kb_diff_row **rows)
{
	uint32_t nr = table->lines.nr, captures[2] = { 0 };
	struct judged *judged = calloc((size_t)nr + 1, sizeof(*judged));
	int ret;

	*rows = calloc((size_t)nr + 1, sizeof(**rows));
	if (!*rows || !judged) {
		free(judged);
		free(*rows);
		*rows = NULL;
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < judging->nr_captures; i++)
		captures[judging->sides[i]]++;
	for (uint32_t i = 0; i < nr; i++) {
		const struct kb_diff_line *line = kb_table_row(&table->lines, i);
		struct side *sides = judged[i].sides;

		judged[i].row = &(*rows)[i];
		sides[0].captures = captures[0];
		sides[1].captures = captures[1];
		add_cells(judging, line, sides);
		judge_sides(line, sides);
		fill_row(judged[i].row, line, sides);
	}
	ret = compare_all(judging, judged, *rows, nr);
	free(judged);
	if (ret) {
		free(*rows);
		*rows = NULL;
		return ret;
	}
	qsort(*rows, nr, sizeof(**rows), compare_rows);
	return nr;
}
