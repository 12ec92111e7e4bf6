// SPDX-License-Identifier: MIT
/*
 * Both sides as one flame graph. A frame is as wide as the mean of both, so that what is gone is
 * seen as well as what is new. Its colour says how it changed: red is more in B, blue is less, and
 * the deeper the colour, the larger the part of itself. The title of a frame tells whether that is certain.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "export/diff/write.h"
#include "export/viewers/flamegraph_put.h"

struct picture {
	const struct kb_diff *diff;
	enum kb_diff_picture what;
	const struct kb_diff_write_options *options;
	struct kb_out *out;
	double scale;		/* pixels of a ns */
	uint32_t depth;		/* of the deepest frame that is drawn */
};

/* What a frame is as wide as, in ns. */
static double size_of(const struct picture *picture, const struct kb_diff_node *node)
{
	const double *total = kb_diff_total(node, picture->options);

	return picture->what == KB_DIFF_PICTURE_BOTH ? (total[0] + total[1]) / 2 :
						       total[picture->what];
}

static double width_of(const struct picture *picture, const struct kb_diff_node *node)
{
	return size_of(picture, node) * picture->scale;
}

/* The change of what has both, from -1 (gone) to 1 (new). */
static double change_of(const double values[2])
{
	double sum = values[0] + values[1];

	return sum > 0 ? (values[1] - values[0]) / sum : 0;
}

/* The colour of 1.5 times as much is as deep as a colour gets. */
static void put_colour(struct kb_out *out, const double values[2])
{
	double change = change_of(values), deep = fmin(fabs(change) * 5, 1);

	kb_out_printf(out, "hsl(%d,%.0f%%,%.0f%%)", change > 0 ? 4 : 215, 15 + 70 * deep,
		      92 - 30 * deep);
}

static void put_ms(struct kb_out *out, const char *side, double ns)
{
	kb_out_printf(out, "%s %.3f ms", side, ns / 1e6);
}

static void put_change(struct kb_out *out, const double values[2])
{
	if (values[0] > 0)
		kb_out_printf(out, ", %+.2f%%", 100 * (values[1] / values[0] - 1));
	else
		kb_out_printf(out, ", new");
}

/* What is known of the chain that ends here. */
static void put_row(const struct picture *picture, const struct kb_diff_node *node)
{
	uint32_t number = picture->options->waits ? node->wait_row : node->cpu_row;
	const struct kb_diff_row *row = number ? &picture->diff->rows[number - 1] : NULL;
	const char *sure = picture->diff->one_each ? ", differs" : ", certain";

	if (!row || !row->compared || !(row->a > 0))
		return;
	kb_out_printf(picture->out, "; itself %+.2f%% (%+.2f%% to ", 100 * row->change,
		      100 * row->low);
	if (isinf(row->high))
		kb_out_printf(picture->out, "any%s)", row->certain ? sure : "");
	else
		kb_out_printf(picture->out, "%+.2f%%%s)", 100 * row->high,
			      row->certain ? sure : "");
}

static void put_frame(const struct picture *picture, const struct kb_diff_node *node, double x)
{
	const struct kb_flame_place place = {
		.x = x, .width = width_of(picture, node), .depth = node->depth,
		.picture_depth = picture->depth,
	};
	const double *total = kb_diff_total(node, picture->options);
	struct kb_out *out = picture->out;
	char label[KB_DIFF_LABEL];

	if (node->depth)
		kb_diff_label(label, node->name, node->image);
	else
		snprintf(label, sizeof(label), "all");
	kb_flame_frame(out, &place, label);
	kb_flame_text(out, node->image, strlen(node->image));
	kb_out_printf(out, "%s", node->kernel ? " [k] " : node->image[0] ? " " : "");
	put_ms(out, "A", total[0]);
	put_ms(out, ", B", total[1]);
	put_change(out, total);
	put_row(picture, node);
	kb_flame_box(out, &place);
	put_colour(out, total);
	kb_flame_frame_end(out, &place, label);
}

/* @left[d] is the left edge of the next node of depth d. */
static int put_frames(struct picture *picture, bool draw)
{
	const struct kb_diff *diff = picture->diff;
	double *left = calloc((size_t)kb_diff_depth(diff) + 2, sizeof(*left));

	if (!left)
		return -ENOMEM;
	for (uint32_t i = 0; i < diff->nr_nodes; i++) {
		const struct kb_diff_node *node = &diff->nodes[diff->order[i]];
		double width = width_of(picture, node);

		left[node->depth + 1] = left[node->depth];
		if (width >= KB_FLAME_LEAST && draw)
			put_frame(picture, node, left[node->depth]);
		if (width >= KB_FLAME_LEAST && node->depth > picture->depth)
			picture->depth = node->depth;
		left[node->depth] += width;
	}
	free(left);
	return 0;
}

int kb_diff_put_flamegraph(const struct kb_diff *diff, enum kb_diff_picture what,
			   const struct kb_diff_write_options *options, struct kb_out *out)
{
	const struct kb_diff_node *root = &diff->nodes[KB_DIFF_NO_NODE];
	const double *all = kb_diff_total(root, options);
	struct picture picture = { .diff = diff, .what = what, .options = options, .out = out };
	int ret;

	if (size_of(&picture, root) > 0)
		picture.scale = KB_FLAME_WIDTH / size_of(&picture, root);
	ret = put_frames(&picture, false);
	if (ret)
		return ret;
	kb_flame_begin(out, picture.depth, options->title ? options->title : "A, then B");
	kb_out_printf(out, "%s: ", options->waits ? "off-CPU" : "on-CPU");
	put_ms(out, "A", all[0]);
	put_ms(out, ", B", all[1]);
	put_change(out, all);
	kb_out_printf(out, "; red: more in B, blue: less");
	kb_flame_buttons(out, picture.depth);
	ret = put_frames(&picture, true);
	kb_flame_end(out);
	return ret;
}

int kb_diff_write_flamegraph(const struct kb_diff *diff,
			     const struct kb_diff_write_options *options, struct kb_out *out)
{
	return kb_diff_put_flamegraph(diff, KB_DIFF_PICTURE_BOTH, options, out);
}
