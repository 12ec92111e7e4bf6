/* SPDX-License-Identifier: MIT */
/* The inside of a flame graph's SVG file: its style, and what clicks do. */
#ifndef KB_LIB_EXPORT_FLAMEGRAPH_SCRIPT_H
#define KB_LIB_EXPORT_FLAMEGRAPH_SCRIPT_H

extern const char kb_flamegraph_style[];
extern const char kb_flamegraph_script[];

#endif
