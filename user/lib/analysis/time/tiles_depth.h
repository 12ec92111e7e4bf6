/* SPDX-License-Identifier: MIT */
#ifndef KB_LIB_ANALYSIS_TIME_TILES_DEPTH_H
#define KB_LIB_ANALYSIS_TIME_TILES_DEPTH_H

#include <kbarman/tiles.h>

/* How many softirqs and interrupts are under way on @core, each in the one before it. */
unsigned int kb_tiles_depth(const struct kb_tiles *tiles, uint32_t core);

#endif
