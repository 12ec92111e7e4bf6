/* SPDX-License-Identifier: MIT */
/*
 * Where samples fell, as numbers: the ids of symbols and lines, and what they stand for. Tables of
 * samples keep the numbers only, and share this.
 */
#ifndef KB_LIB_ANALYSIS_SAMPLES_SPOTS_H
#define KB_LIB_ANALYSIS_SAMPLES_SPOTS_H

#include <stdbool.h>
#include <stdint.h>

#include <kbarman/symbol.h>

#define KB_SPOT_NOWHERE	UINT32_MAX	/* the symbol of records that have no place */

struct kb_spot {
	uint32_t symbol;		/* kb_symbol.id, or KB_SPOT_NOWHERE */
	uint32_t line;			/* kb_frame.line_id */
	bool inlined;
};

/* All zero is empty. */
struct kb_spots {
	struct kb_spot_symbol {
		const char *name, *image, *image_base;	/* of the symbolizer */
		uint64_t address;			/* of kernel functions; 0 for others */
		bool kernel;
	} *symbols;			/* by id; those of which there is no note have any content */
	uint32_t max_symbols;
	uint8_t *noted;			/* a bit for each symbol */
	uint32_t max_noted;		/* bytes */
	struct kb_spot_line {
		const char *file;	/* NULL: no note */
		uint32_t line;
	} *lines;			/* by id */
	uint32_t max_lines;
};

void kb_spots_release(struct kb_spots *spots);

/* Is there a note of symbol @id? */
static inline bool kb_spots_has(const struct kb_spots *spots, uint32_t id)
{
	return id / 8 < spots->max_noted && spots->noted[id / 8] >> id % 8 & 1;
}

/* Note @frame, whose strings must live as long as @spots. Returns 0 or -ENOMEM. */
int kb_spots_note(struct kb_spots *spots, const struct kb_frame *frame, struct kb_spot *spot);

/* What there is a note of; of others all strings are "". */
const struct kb_spot_symbol *kb_spots_symbol(const struct kb_spots *spots, uint32_t id);
const struct kb_spot_line *kb_spots_line(const struct kb_spots *spots, uint32_t id);

#endif
