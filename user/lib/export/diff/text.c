// SPDX-License-Identifier: MIT
/*
 * Differences for people: the totals, then what is certain of each table, the largest first. What is
 * not certain is a number of rows, because a reader would take it for a finding.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include <kbarman/diff_export.h>

#include "base/array.h"
#include "base/options.h"
#include "base/percent.h"
#include "export/diff/label.h"
#include "export/text/report_put.h"

#define FRAMES	10	/* of a chain that are shown */

struct text {
	struct report_text put;		/* for what prints: only its output */
	struct kb_diff_text_options options;
	const struct kb_diff *got;
};

/* ---- values ---- */

static void put_ns(const struct text *text, double ns)
{
	static const struct { double from, unit; const char *name; } units[] = {
		{ 1e9, 1e9, "s" }, { 1e6, 1e6, "ms" }, { 1e3, 1e3, "us" }, { 0, 1, "ns" },
	};
	size_t i = 0;

	while (ns < units[i].from)
		i++;
	text_printf(&text->put, "%9.3f %-2s", ns / units[i].unit, units[i].name);
}

static void put_count(const struct text *text, double count)
{
	static const struct { double from, unit; const char *name; } units[] = {
		{ 1e12, 1e12, "T" }, { 1e9, 1e9, "G" }, { 1e6, 1e6, "M" }, { 1e3, 1e3, "k" },
		{ 0, 1, "" },
	};
	size_t i = 0;

	while (count < units[i].from)
		i++;
	text_printf(&text->put, "%9.3f %-2s", count / units[i].unit, units[i].name);
}

static void put_value(const struct text *text, enum kb_diff_measure measure, double value)
{
	if (measure == KB_DIFF_IPC)
		text_printf(&text->put, "%9.3f   ", value);
	else if (measure == KB_DIFF_COUNTER)
		put_count(text, value);
	else
		put_ns(text, value);
}

static void put_percent(const struct text *text, double change, int width)
{
	if (isinf(change))
		text_printf(&text->put, "%*s", width, change > 0 ? "new" : "?");
	else if (fabs(change) < 10)
		text_printf(&text->put, "%+*.2f%%", width - 1, 100 * change);
	else
		text_printf(&text->put, "%+*.0f%%", width - 1, 100 * change);
}

static void put_interval(const struct text *text, const struct kb_diff_row *row)
{
	if (!row->compared || !(row->a > 0) || (row->low <= -1 && isinf(row->high))) {
		text_printf(&text->put, "%20s", "");
		return;
	}
	put_percent(text, row->low, 9);
	text_printf(&text->put, " ..");
	if (isinf(row->high))
		text_printf(&text->put, "%8s", "");
	else
		put_percent(text, row->high, 8);
}

static void put_numbers(const struct text *text, const struct kb_diff_row *row)
{
	bool color = text->options.colors && row->certain;

	text_printf(&text->put, "%c ", row->certain ? '*' : ' ');
	put_value(text, row->measure, row->a);
	text_printf(&text->put, " ");
	put_value(text, row->measure, row->b);
	if (color)
		text_printf(&text->put, "%s", row->b > row->a ? "\033[31m" : "\033[32m");
	put_percent(text, row->a > 0 || row->b > 0 ? row->change : 0, 10);
	if (color)
		text_printf(&text->put, "%s", KB_COLOR_END);
	put_interval(text, row);
	text_printf(&text->put, "  ");
}

/* ---- rows ---- */

static void put_node(const struct text *text, const struct kb_diff_node *node)
{
	char label[KB_DIFF_LABEL];

	text_put_padded(&text->put, label, kb_diff_label(label, node->name, node->image), 0);
}

/* A chain from its innermost function to its task. */
static void put_chain(const struct text *text, const struct kb_diff_row *row)
{
	const struct kb_diff_node *nodes = text->got->nodes, *node = &nodes[row->node];

	for (unsigned int i = 0; node->depth; node = &nodes[node->parent], i++) {
		if (i)
			text_printf(&text->put, " < ");
		if (i == FRAMES && node->depth > 1) {
			text_printf(&text->put, "(%u more) < ", node->depth - 1);
			while (node->depth > 1)
				node = &nodes[node->parent];
		}
		put_node(text, node);
	}
	text_printf(&text->put, "\n");
}

static void put_name(const struct text *text, const struct kb_diff_row *row)
{
	char label[KB_DIFF_LABEL];

	if (row->by == KB_DIFF_TOTAL) {
		text_put(&text->put, row->measure == KB_DIFF_COUNTER ? row->counter :
			 kb_diff_measure_name(row->measure), 0);
		text_printf(&text->put, "\n");
		return;
	}
	if (row->by == KB_DIFF_CHAIN) {
		put_chain(text, row);
		return;
	}
	text_put_padded(&text->put, label, kb_diff_label(label, row->name, row->image), 0);
	if (row->by == KB_DIFF_SYMBOL && row->name[0]) {
		text_printf(&text->put, row->kernel ? " [k]" : "  ");
		if (!row->kernel)
			text_put(&text->put, row->image, 0);
	}
	text_printf(&text->put, "\n");
}

static void put_columns(const struct text *text)
{
	text_printf(&text->put, "#%11s%14s%14s%20s\n#\n", "A", "B", "change", "interval");
}

/* ---- tables ---- */

static bool same_table(const struct kb_diff_row *a, const struct kb_diff_row *b)
{
	return a->measure == b->measure && a->by == b->by && strcmp(a->counter, b->counter) == 0;
}

static void put_table_title(const struct text *text, const struct kb_diff_row *row)
{
	static const char *const what[KB_DIFF_MEASURES] = {
		[KB_DIFF_CPU] = "CPU time",
		[KB_DIFF_WAIT] = "Time off the CPU",
		[KB_DIFF_LATENCY] = "Mean delay until tasks ran",
		[KB_DIFF_LATENCY_P99] = "99 % of the delays until tasks ran",
		[KB_DIFF_IPC] = "Instructions per cycle",
		[KB_DIFF_IDLE] = "Idling",
		[KB_DIFF_IRQ] = "Interrupts and softirqs",
	};
	static const char *const by[KB_DIFF_BYS] = {
		[KB_DIFF_TASK] = "task", [KB_DIFF_SYMBOL] = "function",
		[KB_DIFF_CHAIN] = "call chain", [KB_DIFF_STATE] = "state",
		[KB_DIFF_HANDLER] = "handler", [KB_DIFF_OBJECT] = "what tasks waited for",
	};

	text_printf(&text->put, "\n# ");
	if (row->measure == KB_DIFF_COUNTER)
		text_put(&text->put, row->counter, 0);
	else
		text_printf(&text->put, "%s", what[row->measure]);
	text_printf(&text->put, " by %s\n", by[row->by]);
}

/* The table that begins at row @first. Returns the number of its rows. */
static uint32_t put_table(const struct text *text, uint32_t first)
{
	const struct kb_diff_row *rows = text->got->rows + first;
	uint32_t left = text->got->nr - first, nr = 0, shown = 0, certain = 0, compared = 0;

	for (; nr < left && same_table(&rows[0], &rows[nr]); nr++) {
		certain += rows[nr].certain;
		compared += rows[nr].compared;
	}
	if (rows[0].by == KB_DIFF_TOTAL || !compared || (!certain && !text->options.all))
		return nr;
	put_table_title(text, rows);
	put_columns(text);
	for (uint32_t i = 0; i < nr && shown < text->options.most; i++) {
		if (!rows[i].certain && !(text->options.all && rows[i].compared))
			continue;
		put_numbers(text, &rows[i]);
		put_name(text, &rows[i]);
		shown++;
	}
	if (certain > shown)
		text_printf(&text->put, text->got->one_each ?
			    "# %u more rows differ between these two runs\n" :
			    "# %u more rows differ for certain\n", certain - shown);
	if (compared > (certain > shown ? certain : shown))
		text_printf(&text->put, text->got->one_each ?
			    "# %u more rows: no difference that the course of the runs does not explain\n" :
			    "# %u more rows: no certain difference\n",
			    compared - (certain > shown ? certain : shown));
	return nr;
}

static void put_totals(const struct text *text)
{
	text_printf(&text->put, "\n# Totals\n");
	put_columns(text);
	for (uint32_t i = 0; i < text->got->nr; i++) {
		if (text->got->rows[i].by != KB_DIFF_TOTAL)
			continue;
		put_numbers(text, &text->got->rows[i]);
		put_name(text, &text->got->rows[i]);
	}
}

/* ---- the head ---- */

static void put_side(const struct text *text, int i)
{
	const struct kb_diff_side *side = &text->got->sides[i];

	text_printf(&text->put, "# %c        : %u capture%s%s of %.3f s, %" PRIu64 " samples, %" PRIu64
		    " switches", "AB"[i], side->captures, side->captures == 1 ? "" : "s",
		    side->captures == 1 ? "" : ", each", side->seconds, side->samples,
		    side->switches);
	if (text->options.sides[i]) {
		text_printf(&text->put, ": ");
		text_put(&text->put, text->options.sides[i], 0);
	}
	text_printf(&text->put, "\n");
}

static void put_head(const struct text *text)
{
	const struct kb_diff *got = text->got;

	put_side(text, 0);
	put_side(text, 1);
	if (text->options.filter) {
		text_printf(&text->put, "# only     : ");
		text_put(&text->put, text->options.filter, 0);
		text_printf(&text->put, "\n");
	}
	text_printf(&text->put, "# %s  : %u of %u rows that were compared (*)\n",
		    got->one_each ? "differs" : "certain", got->nr_certain, got->nr_compared);
	if (got->one_each)
		text_printf(&text->put, "# error    : from the course of each run; how much two runs "
			    "differ is not known, and unchanged work may differ as much: give "
			    "several captures of each\n");
	if (!got->has_objects)
		text_printf(&text->put, "# objects  : none, as not each capture says what tasks waited for\n");
	for (uint32_t i = 0; i < got->nr_doubts; i++) {
		text_printf(&text->put, got->doubts[i].grave ? "# can't be compared: " :
							       "# take care: ");
		text_put(&text->put, got->doubts[i].sentence, 0);
		text_printf(&text->put, "\n");
	}
}

int kb_diff_text(const struct kb_diff *diff, const struct kb_diff_text_options *options,
		 struct kb_out *out, struct kb_error *err)
{
	struct text text = { .put.out = out, .got = diff };
	int ret = KB_OPTIONS(&text.options, options, err);

	if (ret)
		return ret;
	if (!text.options.most)
		text.options.most = 20;
	put_head(&text);
	put_totals(&text);
	for (uint32_t i = 0; i < diff->nr;)
		i += put_table(&text, i);
	ret = kb_out_flush(out);
	return ret ? kb_error_set(err, ret, KB_NO_OFFSET, "can't write the differences: %s",
				  strerror(-ret))
		   : 0;
}
