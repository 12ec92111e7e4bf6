/* SPDX-License-Identifier: MIT */
/* The style and the script of a flame graph's SVG file. */
#ifndef KB_LIB_EXPORT_VIEWERS_FLAMEGRAPH_SCRIPT_H
#define KB_LIB_EXPORT_VIEWERS_FLAMEGRAPH_SCRIPT_H

extern const char kb_flamegraph_style[];
extern const char kb_flamegraph_script[];

#endif
