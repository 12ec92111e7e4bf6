// SPDX-License-Identifier: MIT
#include <string.h>

#include "base/io/out_packet.h"
#include "base/text/utf8.h"
#include "export/viewers/flamegraph_put.h"
#include "export/viewers/flamegraph_script.h"

#define MARGIN		10.0
#define WIDTH		(KB_FLAME_WIDTH + 2 * MARGIN)
#define HEAD		64
#define FOOT		28
#define ROW		16
#define GAP		0.5	/* pixels behind a frame that is wide enough */
#define CHARACTER	7.2	/* pixels of 12 px monospace */
#define TEXT_MAX	1024	/* bytes of a text */

void kb_flame_text(struct kb_out *out, const char *text, size_t length)
{
	char shown[KB_UTF8_GROWTH * TEXT_MAX];
	size_t i, size;

	size = kb_utf8_clean(shown, text, length > TEXT_MAX ? TEXT_MAX : length);
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

static double height_of(uint32_t depth)
{
	return HEAD + (depth + 1.0) * ROW + FOOT;
}

void kb_flame_begin(struct kb_out *out, uint32_t depth, const char *title)
{
	double height = height_of(depth);

	kb_out_printf(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
		      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
		      "viewBox=\"0 0 %.0f %.0f\">\n<style>%s</style>\n"
		      "<rect class=\"paper\" width=\"100%%\" height=\"100%%\"/>\n"
		      "<text class=\"title\" x=\"%.0f\" y=\"26\">", WIDTH, height, WIDTH, height,
		      kb_flamegraph_style, WIDTH / 2);
	kb_flame_text(out, title, strlen(title));
	kb_out_printf(out, "</text>\n<text class=\"sub\" x=\"%.0f\" y=\"44\">", WIDTH / 2);
}

void kb_flame_buttons(struct kb_out *out, uint32_t depth)
{
	double height = height_of(depth);

	kb_out_printf(out, "</text>\n<text id=\"reset\" class=\"button\" x=\"%.0f\" y=\"26\">reset zoom"
		      "</text>\n<text id=\"search\" class=\"button\" x=\"%.0f\" y=\"26\" "
		      "text-anchor=\"end\">search</text>\n<text id=\"details\" x=\"%.0f\" "
		      "y=\"%.0f\"> </text>\n<text id=\"matched\" x=\"%.0f\" y=\"%.0f\" "
		      "text-anchor=\"end\"> </text>\n<g id=\"frames\">\n", MARGIN, WIDTH - MARGIN,
		      MARGIN, height - 9, WIDTH - MARGIN, height - 9);
}

void kb_flame_end(struct kb_out *out)
{
	kb_out_printf(out, "</g>\n<script><![CDATA[\n%s]]></script>\n</svg>\n",
		      kb_flamegraph_script);
}

/* ---- a frame ---- */

static double top_of(const struct kb_flame_place *place)
{
	return HEAD + (double)(place->picture_depth - place->depth) * ROW;
}

void kb_flame_frame(struct kb_out *out, const struct kb_flame_place *place, const char *label)
{
	kb_out_printf(out, "<g class=\"f\" data-x=\"%.3f\" data-w=\"%.3f\" data-d=\"%u\"><title>",
		      place->x, place->width, place->depth);
	kb_flame_text(out, label, strlen(label));
	kb_out_bytes(out, "\n", 1);	/* to the script the first line is the name */
}

void kb_flame_box(struct kb_out *out, const struct kb_flame_place *place)
{
	kb_out_printf(out, "</title><rect x=\"%.2f\" y=\"%.0f\" width=\"%.2f\" height=\"%d\" "
		      "fill=\"", MARGIN + place->x, top_of(place),
		      place->width > 2 ? place->width - GAP : place->width, ROW - 1);
}

/* The length of @label cut to @max bytes, not inside a character. */
static size_t cut(const char *label, size_t max)
{
	while (max && ((unsigned char)label[max] & 0xc0) == 0x80)
		max--;
	return max;
}

void kb_flame_frame_end(struct kb_out *out, const struct kb_flame_place *place, const char *label)
{
	size_t length = strlen(label), room = place->width > 6 ? (place->width - 6) / CHARACTER : 0;

	kb_out_printf(out, "\"/><text x=\"%.2f\" y=\"%.0f\">", MARGIN + place->x + 3,
		      top_of(place) + 11);
	if (room >= length) {
		kb_flame_text(out, label, length);
	} else if (room >= 4) {
		kb_flame_text(out, label, cut(label, room - 2));
		kb_out_bytes(out, "..", 2);
	}
	kb_out_printf(out, "</text></g>\n");
}
