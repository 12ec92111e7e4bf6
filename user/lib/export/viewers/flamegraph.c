// SPDX-License-Identifier: MIT
/*
 * A flame graph: one SVG file without external parts, with zoom and search. Frames narrower
 * than a tenth of a pixel are left out, which limits the size of the file. It is readable
 * without its script, too.
 */
#include <string.h>

#include "base/hash.h"
#include "base/percent.h"
#include "export/list.h"
#include "export/run.h"
#include "export/viewers/flamegraph_put.h"
#include "export/weighed_calls.h"

#define LONGEST		1024	/* bytes of a name */

struct picture {
	const struct kb_weighed_calls *stacks;
	struct kb_out *out;
	double scale;		/* pixels of a unit of weight */
	uint32_t depth;		/* of the deepest frame that is drawn */
};

/* Write an amount as "1,234,567" or as a time. */
static void put_amount(const struct picture *picture, uint64_t amount)
{
	char digits[32], *at = digits + sizeof(digits);
	unsigned int nr = 0;

	if (picture->stacks->times && amount >= 1000000000) {
		kb_out_printf(picture->out, "%.3f s", amount / 1e9);
	} else if (picture->stacks->times) {
		kb_out_printf(picture->out, amount >= 1000000 ? "%.3f ms" : "%.3f us",
			      amount >= 1000000 ? amount / 1e6 : amount / 1e3);
	} else {
		do {
			if (nr && nr % 3 == 0)
				*--at = ',';
			*--at = '0' + amount % 10;
			nr++;
		} while (amount /= 10);
		kb_out_bytes(picture->out, at, digits + sizeof(digits) - at);
	}
}

/* Write what the full width stands for. */
static void put_whole(const struct picture *picture)
{
	const struct kb_weighed_calls *stacks = picture->stacks;
	bool counted = stacks->unit.length == 7 && memcmp(stacks->unit.data, "samples", 7) == 0;

	if (stacks->times) {
		kb_out_printf(picture->out, "off-CPU: ");
		put_amount(picture, stacks->nodes[KB_CALLTREE_ROOT].total);
		kb_out_printf(picture->out, " of waiting, %llu waits",
			      (unsigned long long)stacks->samples);
		return;
	}
	kb_out_printf(picture->out, "on-CPU: ");
	if (!counted) {
		put_amount(picture, stacks->nodes[KB_CALLTREE_ROOT].total);
		kb_out_bytes(picture->out, " ", 1);
		kb_flame_text(picture->out, stacks->unit.data, stacks->unit.length);
		kb_out_bytes(picture->out, ", ", 2);
	}
	put_amount(picture, stacks->samples);
	kb_out_printf(picture->out, " samples");
}

/* Colours: tasks are grey, kernel frames blue, others warm. A name always has the same colour. */
static void put_colour(struct kb_out *out, const struct kb_calltree_node *node, const char *label)
{
	uint32_t hash = kb_hash_fold(kb_hash_string(label));

	if (node->depth < 2)
		kb_out_printf(out, "hsl(0,0%%,%u%%)", 78 + hash % 8);
	else if (node->kernel)
		kb_out_printf(out, "hsl(%u,%u%%,%u%%)", 200 + hash % 25, 55 + hash / 32 % 20,
			      70 + hash / 1024 % 8);
	else
		kb_out_printf(out, "hsl(%u,%u%%,%u%%)", 15 + hash % 38, 80 + hash / 64 % 15,
			      62 + hash / 2048 % 10);
}

static void put_frame(const struct picture *picture, const struct kb_calltree_node *node, double x)
{
	const struct kb_flame_place place = {
		.x = x, .width = node->total * picture->scale, .depth = node->depth,
		.picture_depth = picture->depth,
	};
	uint64_t all = picture->stacks->nodes[KB_CALLTREE_ROOT].total;
	struct kb_out *out = picture->out;
	char label[LONGEST];

	kb_calltree_label(node, label, sizeof(label));
	kb_flame_frame(out, &place, label);
	kb_flame_text(out, node->image_base, strlen(node->image_base));
	kb_out_printf(out, "%s%s%.2f%%, ", node->kernel ? " [k]" : "",
		      node->inlined ? " inlined " : node->image_base[0] ? " " : "",
		      kb_percent(node->total, all));
	put_amount(picture, node->total);
	kb_out_printf(out, "; itself %.2f%%", kb_percent(node->self, all));
	kb_flame_box(out, &place);
	put_colour(out, node, label);
	kb_flame_frame_end(out, &place, label);
}

/*
 * Depth first, so the left edge of a node is the right edge of its previous sibling. @left[d]
 * is the left edge of the next node of depth d.
 */
static void put_frames(struct picture *picture, bool draw)
{
	const struct kb_weighed_calls *stacks = picture->stacks;
	double left[KB_CALLTREE_DEPTH + 3] = { 0 };
	uint32_t i;

	for (i = 0; i < stacks->nr; i++) {
		const struct kb_calltree_node *node = &stacks->nodes[stacks->order[i]];
		double width = node->total * picture->scale;

		left[node->depth + 1] = left[node->depth];
		if (width >= KB_FLAME_LEAST && draw)
			put_frame(picture, node, left[node->depth]);
		if (width >= KB_FLAME_LEAST && node->depth > picture->depth)
			picture->depth = node->depth;
		left[node->depth] += width;
	}
}

static void put_head(const struct picture *picture, const struct kb_barman *barman)
{
	const char *command = kb_barman_fact(barman, "command");
	struct kb_out *out = picture->out;

	if (!command)
		command = kb_barman_header(barman)->target_name;
	kb_flame_begin(out, picture->depth, command ? command : "");
	put_whole(picture);
	if (kb_barman_fact(barman, "release")) {
		kb_out_printf(out, ", Linux ");
		kb_flame_text(out, kb_barman_fact(barman, "release"),
			      strlen(kb_barman_fact(barman, "release")));
	}
	kb_flame_buttons(out, picture->depth);
}

static void put_picture(const struct kb_weighed_calls *stacks, const struct kb_barman *barman,
			struct kb_out *out)
{
	uint64_t all = stacks->nodes[KB_CALLTREE_ROOT].total;
	struct picture picture = {
		.stacks = stacks,
		.out = out,
		.scale = all ? KB_FLAME_WIDTH / all : 0,
	};

	put_frames(&picture, false);
	put_head(&picture, barman);
	put_frames(&picture, true);
	kb_flame_end(out);
}

static int run(struct kb_trace *trace, const struct kb_export_options *options,
	       struct kb_out *out, struct kb_error *err)
{
	struct kb_weighed_calls stacks;
	int ret;

	ret = kb_weighed_calls_read(&stacks, trace, options, err);
	if (!ret) {
		put_picture(&stacks, trace->barman, out);
		ret = kb_export_end(trace, out, false, err);
	}
	kb_weighed_calls_release(&stacks);
	return ret;
}

static const char *const formats[] = KB_WEIGHED_CALLS_FORMATS(".svg");

const struct kb_export kb_export_flamegraph = {
	.name = "flamegraph",
	.extension = ".svg",
	.description = "a flame graph, one SVG file with zoom and search (weight, samples, offcpu)",
	.formats = formats,
	.run = run,
};
