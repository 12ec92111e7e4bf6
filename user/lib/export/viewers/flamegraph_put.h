/* SPDX-License-Identifier: MIT */
/*
 * export/viewers/: files for viewers of others: Chrome, Perfetto, the Firefox Profiler, speedscope,
 * pprof, and call chains as flame graph or folded text.
 *
 * What all flame graphs have in common: the file around the frames, and how a frame is drawn.
 */
#ifndef KB_LIB_EXPORT_VIEWERS_FLAMEGRAPH_PUT_H
#define KB_LIB_EXPORT_VIEWERS_FLAMEGRAPH_PUT_H

#include <stddef.h>
#include <stdint.h>

#include <kbarman/out.h>

#define KB_FLAME_WIDTH	1180.0	/* pixels of all frames together */
#define KB_FLAME_LEAST	0.1	/* pixels; width of the narrowest frame */

/* Write text in XML: valid UTF-8 without markup and without control characters. */
void kb_flame_text(struct kb_out *out, const char *text, size_t length);

/*
 * A picture: kb_flame_begin(), what the full width stands for, kb_flame_buttons(), the frames,
 * kb_flame_end(). @depth: of its deepest frame.
 */
void kb_flame_begin(struct kb_out *out, uint32_t depth, const char *title);
void kb_flame_buttons(struct kb_out *out, uint32_t depth);
void kb_flame_end(struct kb_out *out);

struct kb_flame_place {
	double x, width;	/* pixels */
	uint32_t depth, picture_depth;
};

/*
 * A frame: kb_flame_frame(), what is said of it, kb_flame_box(), its colour in CSS,
 * kb_flame_frame_end().
 */
void kb_flame_frame(struct kb_out *out, const struct kb_flame_place *place, const char *label);
void kb_flame_box(struct kb_out *out, const struct kb_flame_place *place);
void kb_flame_frame_end(struct kb_out *out, const struct kb_flame_place *place, const char *label);

#endif
