// SPDX-License-Identifier: MIT
/*
 * How often diff is wrong, and what it finds: 1,000 pairs of runs that do not differ, and pairs in
 * which a known function became slower. The runs are made of one real recording, whose slices are in
 * diff_slices.txt: from blocks of four slices, drawn at random.
 *
 *	build/selftests/host/test_diff_certainty [CAPTURE]	another recording
 *	build/selftests/host/test_diff_certainty -w CAPTURE	writes diff_slices.txt of it
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "../lib/tap.h"
#include "analysis/diff/inside.h"
#include "stats/random.h"

#define SLICES		KB_BLOCKS_SLICES
#define LENGTH		KB_BLOCKS_LENGTH
#define FILE_NAME	"selftests/host/diff_slices.txt"
#define ROWS_MAX	8192
#define PAIRS		1000
#define COPIES_MAX	10
#define NEAR		2	/* slices: how far from its place a slice of a run may come from */

struct row {
	enum kb_diff_measure measure;
	enum kb_diff_by by;
	bool kernel;
	char name[128], image[128];
	double events;
	double slices[SLICES];
};

static struct row rows[ROWS_MAX];
static unsigned int nr_rows;
static uint64_t state;

/* ---- the recording ---- */

static void see(void *context, const struct kb_diff_what *what, const double blocks[SLICES],
		double events)
{
	struct row *row = &rows[nr_rows];

	(void)context;
	if (nr_rows == ROWS_MAX || events < 10)
		return;
	*row = (struct row){ .measure = what->measure, .by = what->by, .kernel = what->kernel,
			     .events = events };
	/* the tree of calls is not kept */
	if (what->by == KB_DIFF_CHAIN)
		snprintf(row->name, sizeof(row->name), "chain %u", what->node);
	else
		snprintf(row->name, sizeof(row->name), "%s", what->name ? what->name : "");
	snprintf(row->image, sizeof(row->image), "%s", what->image ? what->image : "");
	memcpy(row->slices, blocks, sizeof(row->slices));
	nr_rows++;
}

static bool read_capture(const char *path)
{
	struct kb_diff_capture capture = { .slices = true, .see = see };
	struct kb_diff_table table;
	struct kb_trace *trace;
	struct kb_error err;

	if (kb_diff_table_init(&table) || kb_trace_open(&trace, path, NULL, &err))
		return false;
	if (kb_diff_read(&table, &capture, trace, NULL, &err) < 0)
		return false;
	kb_trace_close(trace);
	kb_diff_table_release(&table);
	return true;
}

static void write_slices(const char *capture)
{
	printf("# CPU time and other times of 64 slices of a recording, in us, for test_diff_certainty.\n"
	       "# Made by: build/selftests/host/test_diff_certainty -w %s >%s\n"
	       "# measure by kernel events name image slices\n", strrchr(capture, '/') ?
	       strrchr(capture, '/') + 1 : capture, FILE_NAME);
	for (unsigned int i = 0; i < nr_rows; i++) {
		const struct row *row = &rows[i];

		printf("%d\t%d\t%d\t%.0f\t%s\t%s\t", row->measure, row->by, row->kernel,
		       row->events, row->name, row->image);
		for (unsigned int j = 0; j < SLICES; j++)
			printf("%.0f%c", row->slices[j] / 1000, j + 1 < SLICES ? ' ' : '\n');
	}
}

static char *field(char **line)
{
	char *end = *line ? strsep(line, "\t") : NULL;

	return end ? end : "";
}

static bool read_slices(void)
{
	FILE *file = fopen(FILE_NAME, "r");
	char line[4096], *at;

	while (file && nr_rows < ROWS_MAX && fgets(line, sizeof(line), file)) {
		struct row *row = &rows[nr_rows];

		if (line[0] == '#')
			continue;
		at = line;
		row->measure = (enum kb_diff_measure)atoi(field(&at));
		row->by = (enum kb_diff_by)atoi(field(&at));
		row->kernel = atoi(field(&at));
		row->events = atof(field(&at));
		snprintf(row->name, sizeof(row->name), "%s", field(&at));
		snprintf(row->image, sizeof(row->image), "%s", field(&at));
		for (unsigned int j = 0; j < SLICES; j++)
			row->slices[j] = strtod(at, &at) * 1000;
		nr_rows++;
	}
	if (file)
		fclose(file);
	return nr_rows;
}

/* ---- runs ---- */

/* What runs are made: of slices @near their place or from anywhere, @copies times as long. */
struct runs {
	unsigned int nr, copies;
	bool near;
};

/*
 * From which slice each slice of a run comes. Runs of one program have the same phases: @near makes
 * such runs, of slices that are not far from their place. Else blocks come from anywhere.
 */
static void draw(unsigned int from[SLICES], bool near)
{
	unsigned int length = near ? 1 : LENGTH;

	for (unsigned int i = 0; i < SLICES; i += length) {
		uint32_t first = near ? i + SLICES - NEAR + kb_random_below(&state, 2 * NEAR + 1) :
					kb_random_below(&state, SLICES);

		for (unsigned int j = 0; j < length; j++)
			from[i + j] = (first + j) % SLICES;
	}
}

static int add_row(struct kb_differ *differ, struct kb_diff_capture *capture,
		   const struct row *row, unsigned int from[COPIES_MAX][SLICES],
		   unsigned int copies, double factor, const double *more)
{
	const struct kb_diff_what what = {
		.measure = row->measure,
		.by = row->by,
		.kernel = row->kernel,
		.name = kb_diff_table_text(&differ->table, row->name, strlen(row->name)),
		.image = kb_diff_table_text(&differ->table, row->image, strlen(row->image)),
	};
	struct kb_diff_cell cell = { .capture = capture->number, .events = copies * row->events };
	double slices[SLICES] = { 0 };

	cell.blocks = calloc(SLICES, sizeof(*cell.blocks));
	if (!cell.blocks)
		return -ENOMEM;
	for (unsigned int i = 0; i < SLICES; i++) {
		for (unsigned int j = 0; j < copies; j++)
			slices[i] += factor * row->slices[from[j][i]] +
				     (more ? more[from[j][i]] : 0);
		cell.value += slices[i];
		cell.blocks[i] = (float)slices[i];
	}
	cell.weight = cell.value;
	cell.variance = kb_blocks_variance(slices);
	return kb_diff_table_put(&differ->table, &what, &cell);
}

/* A run in which @slow (NULL: none) takes 1 + @by times as long, and so does more in all. */
static int add_run(struct kb_differ *differ, unsigned int side, const struct runs *runs,
		   const struct row *slow, double by)
{
	struct kb_diff_capture *capture = kb_differ_new_capture(differ, side);
	unsigned int from[COPIES_MAX][SLICES];
	double more[SLICES] = { 0 };

	if (!capture)
		return -ENOMEM;
	for (unsigned int i = 0; i < runs->copies; i++)
		draw(from[i], runs->near);
	for (unsigned int i = 0; slow && i < SLICES; i++)
		more[i] = by * slow->slices[i];
	for (unsigned int i = 0; i < nr_rows; i++) {
		bool total = rows[i].measure == KB_DIFF_CPU && rows[i].by == KB_DIFF_TOTAL;

		if (add_row(differ, capture, &rows[i], from, runs->copies,
			    &rows[i] == slow ? 1 + by : 1, total ? more : NULL))
			return -ENOMEM;
	}
	return 0;
}

/* ---- pairs ---- */

struct counts {
	unsigned int pairs;	/* with a difference that is called certain */
	unsigned long compared, unlikely;	/* rows; those whose p is below 5 % */
	unsigned int found;	/* the slow function is certain */
	double change, squares;	/* of the slow function, sums */
};

static bool is_row(const struct kb_diff_row *shown, const struct row *row)
{
	return row && shown->measure == row->measure && shown->by == row->by &&
	       !strcmp(shown->name, row->name) && !strcmp(shown->image, row->image);
}

static bool compare(struct counts *counts, const struct runs *runs, const struct row *slow,
		    double by)
{
	struct kb_differ *differ;
	const struct kb_diff *diff;
	struct kb_error err;
	bool good = !kb_differ_create(&differ, NULL, &err);

	for (unsigned int i = 0; i < runs->nr && good; i++)
		good = !add_run(differ, 0, runs, NULL, 0) && !add_run(differ, 1, runs, slow, by);
	good = good && !kb_differ_judge(differ, &diff, &err);
	for (uint32_t i = 0; good && i < diff->nr; i++) {
		counts->compared += diff->rows[i].compared;
		counts->unlikely += diff->rows[i].compared && diff->rows[i].p <= 0.05;
		if (is_row(&diff->rows[i], slow)) {
			counts->found += diff->rows[i].certain;
			counts->change += diff->rows[i].change;
			counts->squares += pow(diff->rows[i].change - by, 2);
		}
	}
	counts->pairs += good && diff->nr_certain;
	kb_differ_destroy(differ);
	return good;
}

static void false_alarms(unsigned int nr, bool near)
{
	const struct runs runs = { .nr = nr, .copies = 1, .near = near };
	struct counts counts = { 0 };
	char name[128];
	bool good = true;

	state = nr;
	for (unsigned int i = 0; i < PAIRS && good; i++)
		good = compare(&counts, &runs, NULL, 0);
	tap_note("%u run%s a side, blocks from %s: a false alarm in %.1f %% of pairs; p < 5 %% in "
		 "%.1f %% of %lu rows", nr, nr == 1 ? "" : "s", near ? "nearby" : "anywhere",
		 100.0 * counts.pairs / PAIRS, 100.0 * (double)counts.unlikely /
		 (double)counts.compared, counts.compared / PAIRS);
	snprintf(name, sizeof(name), "%u_run%s_a_side_that_do_not_differ_raise_5_%%_false_alarms_at_most",
		 nr, nr == 1 ? "" : "s");
	tap_ok(good && counts.pairs <= PAIRS / 20, name);
}

/* The function with the most CPU time. */
static const struct row *largest(void)
{
	const struct row *found = NULL;
	double most = 0;

	for (unsigned int i = 0; i < nr_rows; i++) {
		double sum = 0;

		if (rows[i].measure != KB_DIFF_CPU || rows[i].by != KB_DIFF_SYMBOL)
			continue;
		for (unsigned int j = 0; j < SLICES; j++)
			sum += rows[i].slices[j];
		if (sum > most) {
			most = sum;
			found = &rows[i];
		}
	}
	return found;
}

#define SLOWER_PAIRS	(PAIRS / 5)

/* How often it is found that @slow takes 1 + @by times as long, and as how much that is measured. */
static struct counts find(const struct row *slow, double by, const struct runs *runs)
{
	struct counts counts = { 0 };

	state = (uint64_t)(1000 * by) + runs->nr;
	for (unsigned int i = 0; i < SLOWER_PAIRS; i++)
		if (!compare(&counts, runs, slow, by))
			return (struct counts){ 0 };
	return counts;
}

static void slower(const struct row *slow, unsigned int copies)
{
	static const unsigned int runs[] = { 1, 3, 5, 10 };
	static const double by[] = { 0.01, 0.02, 0.05 };
	double deviation = 0;
	unsigned int last = 0;

	for (unsigned int i = 0; i < 3; i++) {
		double change = 0;
		char line[256] = "";

		for (unsigned int j = 0; j < 4; j++) {
			const struct runs made = { .nr = runs[j], .copies = copies, .near = true };
			struct counts counts = find(slow, by[i], &made);

			snprintf(line + strlen(line), sizeof(line) - strlen(line), "%s%u: %.0f %%",
				 j ? ", " : "", runs[j], 100.0 * counts.found / SLOWER_PAIRS);
			change += counts.change / SLOWER_PAIRS / 4;
			last = counts.found;
			/* of a run: that of the difference of two means of 10 runs */
			deviation = sqrt(counts.squares / SLOWER_PAIRS * 10 / 2);
		}
		tap_note("%s slower by %.0f %%, runs %u times as long: measured as %.2f %%; found "
			 "with so many runs a side: %s", slow->name, 100 * by[i], copies,
			 100 * change, line);
		tap_ok(fabs(change - by[i]) < 0.002, "what_became_slower_is_measured_right");
	}
	tap_note("deviation from run to run: %.2f %%", 100 * deviation);
	tap_ok(last >= SLOWER_PAIRS * 9 / 10, "5_percent_are_found_in_10_runs");
}

int main(int argc, char **argv)
{
	bool write = argc == 3 && !strcmp(argv[1], "-w");

	if (argc > 1 ? !read_capture(argv[argc - 1]) : !read_slices()) {
		fprintf(stderr, "can't read %s\n", argc > 1 ? argv[argc - 1] : FILE_NAME);
		return 2;
	}
	if (write) {
		write_slices(argv[2]);
		return 0;
	}
	false_alarms(1, false);
	false_alarms(1, true);
	for (unsigned int runs = 2; runs <= 10; runs = runs < 3 ? 3 : runs < 5 ? 5 : runs + 5)
		false_alarms(runs, true);
	false_alarms(5, false);
	if (tap_ok(largest(), "the_recording_has_functions"))
		slower(largest(), 1);
	if (largest())
		slower(largest(), COPIES_MAX);
	return tap_done();
}
