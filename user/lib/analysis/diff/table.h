/* SPDX-License-Identifier: MIT */
/*
 * The values of several captures by what they are of: rows with a cell for each capture, and call
 * chains as a tree. What two captures call the same is one row. Texts are copied, because captures
 * are closed.
 */
#ifndef KB_LIB_ANALYSIS_DIFF_TABLE_H
#define KB_LIB_ANALYSIS_DIFF_TABLE_H

#include <kbarman/diff.h>

#include "base/table.h"

/* What a capture says of a row. */
struct kb_diff_cell {
	uint32_t capture;
	double value;
	double variance;	/* of the value, from the slices of its run */
	float *blocks;		/* these slices, KB_BLOCKS_SLICES; the table frees them; NULL: they
				 * are not kept, because the row is too small */
	double weight;		/* what the share of the row is: the value itself, or what it is a
				 * mean of */
	double events;		/* from so many records */
};

/* What a row is of: texts as kb_diff_table_text() returns them. */
struct kb_diff_what {
	enum kb_diff_measure measure;
	enum kb_diff_by by;
	const char *counter, *name, *image;
	bool kernel;
	uint32_t node;
};

struct kb_diff_line {
	uint64_t key[4];
	struct kb_diff_what what;
	struct kb_diff_cell *cells;	/* by capture, not all of them */
	uint32_t nr, room;
};

struct kb_diff_place {
	uint64_t key[3];
	const char *name, *image;
	bool kernel;
	uint32_t parent, depth;
	double rest[2][2];	/* ns on and off the CPU of each side, of all its captures: what is
				 * too little for a row */
};

struct kb_diff_table {
	void *texts;		/* tsearch(3) */
	struct kb_table lines;	/* struct kb_diff_line */
	struct kb_table places;	/* struct kb_diff_place; the first one is the root */
};

/* Is a value a mean of something, so that a total is not the sum of its rows? */
static inline bool kb_diff_is_mean(enum kb_diff_measure measure)
{
	return measure == KB_DIFF_LATENCY || measure == KB_DIFF_LATENCY_P99 || measure == KB_DIFF_IPC;
}

/* Returns 0 or -ENOMEM. */
int kb_diff_table_init(struct kb_diff_table *table);
void kb_diff_table_release(struct kb_diff_table *table);

/* The one copy of @text, which lives as long as the table; NULL without memory. */
const char *kb_diff_table_text(struct kb_diff_table *table, const char *text, size_t length);

/* Add a cell of a capture, the latest one, with its blocks. Returns 0 or -ENOMEM. */
int kb_diff_table_put(struct kb_diff_table *table, const struct kb_diff_what *what,
		      const struct kb_diff_cell *cell);

/* Forget all lines of that kind. Nothing is put afterwards. */
void kb_diff_table_drop(struct kb_diff_table *table, enum kb_diff_by by);

/* The number of the node below @parent; -ENOMEM. Texts as above. */
int64_t kb_diff_table_place(struct kb_diff_table *table, uint32_t parent, const char *name,
			    const char *image, bool kernel);

#endif
