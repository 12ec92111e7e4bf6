/* SPDX-License-Identifier: MIT */
/*
 * analysis/diff/: captures beside each other: each is read into cells over time (read.h), the cells
 * get names (table.h), and the rest says what differs for certain (judge.h) and what can't be
 * compared (doubts.h).
 *
 * Private struct kb_differ, shown to tests: they make captures of it without files.
 */
#ifndef KB_LIB_ANALYSIS_DIFF_INSIDE_H
#define KB_LIB_ANALYSIS_DIFF_INSIDE_H

#include "analysis/diff/doubts.h"
#include "analysis/diff/read.h"

struct kb_differ {
	struct kb_diff shown;		/* the results */
	struct kb_diff_options how;
	struct kb_diff_table table;
	struct kb_diff_origin *origins;	/* by capture */
	struct kb_diff_capture *captures;
	uint8_t *sides;
	uint32_t nr, room;
	struct kb_diff_row *rows;
	struct kb_diff_node *nodes;
	uint32_t *order;
	struct kb_diff_doubts doubts;
	bool judged;
};

/* Add a capture whose cells the caller puts. Returns it, until the next call; NULL without memory. */
struct kb_diff_capture *kb_differ_new_capture(struct kb_differ *differ, unsigned int side);

#endif
