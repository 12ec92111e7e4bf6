// SPDX-License-Identifier: MIT
/*
 * A flame graph: one SVG file without external parts, with zoom and search. Frames narrower
 * than a tenth of a pixel are left out, which limits the size of the file. It is readable
 * without its script, too.
 */
#include <stdio.h>
#include <string.h>

#include "base/out_packet.h"
#include "base/utf8.h"
#include "export/flamegraph_script.h"
#include "base/hash.h"
#include "base/percent.h"
#include "export/list.h"
#include "export/run.h"
#include "export/weighed_calls.h"

#define WIDTH		1200.0
#define MARGIN		10.0
#define HEAD		64
#define FOOT		28
#define ROW		16
#define LEAST		0.1	/* pixels; width of the narrowest frame */
#define GAP		0.5	/* pixels behind a frame that is wide enough */
#define CHARACTER	7.2	/* pixels of 12 px monospace */
#define LONGEST		1024	/* bytes of a name */

struct picture {
	const struct kb_weighed_calls *stacks;
	struct kb_out *out;
	double scale;		/* pixels of a unit of weight */
	uint32_t depth;		/* of the deepest frame that is drawn */
};

/* Write text in XML: valid UTF-8 without markup and without control characters. */
static void put_text(struct kb_out *out, const char *text, size_t length)
{
	char shown[KB_UTF8_GROWTH * LONGEST];
	size_t i, size;

	size = kb_utf8_clean(shown, text, length > LONGEST ? LONGEST : length);
	size = kb_utf8_shown(shown, shown, size);
	for (i = 0; i < size; i++) {
		switch (shown[i]) {
		case '<':
			kb_out_bytes(out, "&lt;", 4);
			break;
		case '>':
			kb_out_bytes(out, "&gt;", 4);
			break;
		case '&':
			kb_out_bytes(out, "&amp;", 5);
			break;
		case '"':
			kb_out_bytes(out, "&quot;", 6);
			break;
		default:
			kb_out_bytes(out, shown + i, 1);
		}
	}
}

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
		put_text(picture->out, stacks->unit.data, stacks->unit.length);
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

/* The length of @label cut to @max bytes, not inside a character. */
static size_t cut(const char *label, size_t max)
{
	while (max && ((unsigned char)label[max] & 0xc0) == 0x80)
		max--;
	return max;
}

static void put_frame(const struct picture *picture, const struct kb_calltree_node *node, double x)
{
	double width = node->total * picture->scale;
	uint64_t all = picture->stacks->nodes[KB_CALLTREE_ROOT].total;
	double y = HEAD + (double)(picture->depth - node->depth) * ROW;
	size_t length, room = width > 6 ? (width - 6) / CHARACTER : 0;
	struct kb_out *out = picture->out;
	char label[LONGEST];

	kb_calltree_label(node, label, sizeof(label));
	length = strlen(label);
	kb_out_printf(out, "<g class=\"f\" data-x=\"%.3f\" data-w=\"%.3f\" data-d=\"%u\"><title>", x,
		      width, node->depth);
	put_text(out, label, length);
	kb_out_bytes(out, "\n", 1);	/* to the script the first line is the name */
	put_text(out, node->image_base, strlen(node->image_base));
	kb_out_printf(out, "%s%s%.2f%%, ", node->kernel ? " [k]" : "",
		      node->inlined ? " inlined " : node->image_base[0] ? " " : "",
		      kb_percent(node->total, all));
	put_amount(picture, node->total);
	kb_out_printf(out, "; itself %.2f%%</title><rect x=\"%.2f\" y=\"%.0f\" "
		      "width=\"%.2f\" height=\"%d\" fill=\"", kb_percent(node->self, all),
		      MARGIN + x, y, width > 2 ? width - GAP : width, ROW - 1);
	put_colour(out, node, label);
	kb_out_printf(out, "\"/><text x=\"%.2f\" y=\"%.0f\">", MARGIN + x + 3, y + 11);
	if (room >= length) {
		put_text(out, label, length);
	} else if (room >= 4) {
		put_text(out, label, cut(label, room - 2));
		kb_out_bytes(out, "..", 2);
	}
	kb_out_printf(out, "</text></g>\n");
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
		if (width >= LEAST && draw)
			put_frame(picture, node, left[node->depth]);
		if (width >= LEAST && node->depth > picture->depth)
			picture->depth = node->depth;
		left[node->depth] += width;
	}
}

static void put_head(const struct picture *picture, const struct kb_barman *barman, double height)
{
	const char *command = kb_barman_fact(barman, "command");
	struct kb_out *out = picture->out;

	if (!command)
		command = kb_barman_header(barman)->target_name;
	kb_out_printf(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
		      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
		      "viewBox=\"0 0 %.0f %.0f\">\n<style>%s</style>\n"
		      "<rect class=\"paper\" width=\"100%%\" height=\"100%%\"/>\n"
		      "<text class=\"title\" x=\"%.0f\" y=\"26\">", WIDTH, height, WIDTH, height,
		      kb_flamegraph_style, WIDTH / 2);
	put_text(out, command ? command : "", command ? strlen(command) : 0);
	kb_out_printf(out, "</text>\n<text class=\"sub\" x=\"%.0f\" y=\"44\">", WIDTH / 2);
	put_whole(picture);
	if (kb_barman_fact(barman, "release")) {
		kb_out_printf(out, ", Linux ");
		put_text(out, kb_barman_fact(barman, "release"),
			 strlen(kb_barman_fact(barman, "release")));
	}
	kb_out_printf(out, "</text>\n<text id=\"reset\" class=\"button\" x=\"%.0f\" y=\"26\">reset zoom"
		      "</text>\n<text id=\"search\" class=\"button\" x=\"%.0f\" y=\"26\" "
		      "text-anchor=\"end\">search</text>\n<text id=\"details\" x=\"%.0f\" "
		      "y=\"%.0f\"> </text>\n<text id=\"matched\" x=\"%.0f\" y=\"%.0f\" "
		      "text-anchor=\"end\"> </text>\n<g id=\"frames\">\n", MARGIN, WIDTH - MARGIN,
		      MARGIN, height - 9, WIDTH - MARGIN, height - 9);
}

static void put_picture(const struct kb_weighed_calls *stacks, const struct kb_barman *barman,
			struct kb_out *out)
{
	uint64_t all = stacks->nodes[KB_CALLTREE_ROOT].total;
	struct picture picture = {
		.stacks = stacks,
		.out = out,
		.scale = all ? (WIDTH - 2 * MARGIN) / all : 0,
	};

	put_frames(&picture, false);
	put_head(&picture, barman, HEAD + (picture.depth + 1.0) * ROW + FOOT);
	put_frames(&picture, true);
	kb_out_printf(out, "</g>\n<script><![CDATA[\n%s]]></script>\n</svg>\n",
		      kb_flamegraph_script);
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
