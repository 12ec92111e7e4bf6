// SPDX-License-Identifier: MIT
/* See json.h; kbarman-json(5) lists the keys. */
#include <math.h>
#include <unistd.h>

#include <kbarman/out.h>

#include "base/text/json.h"
#include "cli/diff/json.h"
#include "export/diff/label.h"

static void put_side(struct kb_json *json, const char *name, const struct kb_diff_side *side)
{
	kb_json_begin(json, "diff_side");
	kb_json_string(json, "side", name);
	kb_json_u64(json, "captures", side->captures);
	kb_json_double(json, "seconds", side->seconds);
	kb_json_u64(json, "records", side->records);
	kb_json_u64(json, "samples", side->samples);
	kb_json_u64(json, "switches", side->switches);
	kb_json_u64(json, "lost", side->lost);
	kb_json_bool(json, "damaged", side->damaged);
	kb_json_end(json);
}

static void put_head(struct kb_json *json, const struct kb_diff *diff, double level, const char *only)
{
	kb_json_begin(json, "diff");
	kb_json_double(json, "level", level);
	if (only)
		kb_json_string(json, "only", only);
	kb_json_u64(json, "compared", diff->nr_compared);
	kb_json_u64(json, "certain", diff->nr_certain);
	kb_json_bool(json, "objects", diff->has_objects);
	kb_json_end(json);
	put_side(json, "A", &diff->sides[0]);
	put_side(json, "B", &diff->sides[1]);
}

static void put_doubt(struct kb_json *json, const struct kb_diff_doubt *doubt)
{
	kb_json_begin(json, "diff_doubt");
	kb_json_bool(json, "grave", doubt->grave);
	kb_json_string(json, "sentence", doubt->sentence);
	kb_json_end(json);
}

/* The functions of a chain, the outermost first; the first one is the task. */
static void put_chain(struct kb_json *json, const struct kb_diff *diff, uint32_t node)
{
	uint32_t path[1024], nr = 0;
	char label[KB_DIFF_LABEL];

	for (; node && nr < sizeof(path) / sizeof(path[0]); node = diff->nodes[node].parent)
		path[nr++] = node;
	kb_json_array(json, "stack");
	while (nr-- > 0) {
		kb_diff_label(label, diff->nodes[path[nr]].name, diff->nodes[path[nr]].image);
		kb_json_string(json, NULL, label);
	}
	kb_json_array_end(json);
}

/* What has no finite value is null. */
static void put_row(struct kb_json *json, const struct kb_diff *diff, const struct kb_diff_row *row)
{
	kb_json_begin(json, "diff_row");
	kb_json_string(json, "measure", kb_diff_measure_name(row->measure));
	if (row->measure == KB_DIFF_COUNTER)
		kb_json_string(json, "counter", row->counter);
	kb_json_string(json, "by", kb_diff_by_name(row->by));
	if (row->by == KB_DIFF_CHAIN)
		put_chain(json, diff, row->node);
	else if (row->by != KB_DIFF_TOTAL)
		kb_json_string(json, "name", row->name);
	if (row->by == KB_DIFF_SYMBOL) {
		kb_json_string(json, "image", row->image);
		kb_json_bool(json, "kernel", row->kernel);
	}
	kb_json_double(json, "a", row->a);
	kb_json_double(json, "b", row->b);
	kb_json_double(json, "change", row->change);
	kb_json_double(json, "low", row->low);
	kb_json_double(json, "high", row->high);
	kb_json_double(json, "p", row->p);
	kb_json_double(json, "q", row->q);
	kb_json_bool(json, "compared", row->compared);
	kb_json_bool(json, "certain", row->certain);
	kb_json_end(json);
}

int diff_print_json(const struct kb_diff *diff, double level, const char *only)
{
	struct kb_json json = { 0 };
	int ret = kb_out_fd(&json.out, STDOUT_FILENO);

	if (ret)
		return ret;
	put_head(&json, diff, level, only);
	for (uint32_t i = 0; i < diff->nr_doubts; i++)
		put_doubt(&json, &diff->doubts[i]);
	for (uint32_t i = 0; i < diff->nr; i++)
		put_row(&json, diff, &diff->rows[i]);
	ret = kb_out_flush(json.out);
	kb_out_destroy(json.out);
	return ret;
}

int diff_print_condition(const struct diff_condition *condition, bool holds,
			 const struct kb_diff_row *row)
{
	struct kb_json json = { 0 };
	int ret = kb_out_fd(&json.out, STDOUT_FILENO);

	if (ret)
		return ret;
	kb_json_begin(&json, "diff_condition");
	kb_json_string(&json, "condition", condition->text);
	kb_json_bool(&json, "holds", holds);
	kb_json_double(&json, "change", row->change);
	kb_json_end(&json);
	ret = kb_out_flush(json.out);
	kb_out_destroy(json.out);
	return ret;
}
