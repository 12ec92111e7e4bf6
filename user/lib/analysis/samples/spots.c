// SPDX-License-Identifier: MIT
/* See spots.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/samples/spots.h"
#include "base/array.h"

void kb_spots_release(struct kb_spots *spots)
{
	free(spots->symbols);
	free(spots->noted);
	free(spots->lines);
	*spots = (struct kb_spots) { 0 };
}

static int note_symbol(struct kb_spots *spots, const struct kb_symbol *symbol)
{
	uint32_t id = symbol->id, old = spots->max_noted;

	if (!KB_ARRAY_ROOM(spots->symbols, spots->max_symbols, (size_t)id + 1) ||
	    !KB_ARRAY_ROOM(spots->noted, spots->max_noted, (size_t)id / 8 + 1))
		return -ENOMEM;
	memset(spots->noted + old, 0, spots->max_noted - old);
	spots->symbols[id] = (struct kb_spot_symbol) {
		.name = symbol->name,
		.image = symbol->image,
		.image_base = symbol->image_base,
		.address = symbol->kernel ? symbol->address : 0,
		.kernel = symbol->kernel,
	};
	spots->noted[id / 8] |= (uint8_t)(1 << id % 8);
	return 0;
}

static int note_line(struct kb_spots *spots, const struct kb_frame *frame)
{
	uint32_t id = frame->line_id, old = spots->max_lines;

	if (!KB_ARRAY_ROOM(spots->lines, spots->max_lines, (size_t)id + 1))
		return -ENOMEM;
	memset(spots->lines + old, 0, (spots->max_lines - old) * sizeof(*spots->lines));
	spots->lines[id] = (struct kb_spot_line) { frame->file, frame->line };
	return 0;
}

int kb_spots_note(struct kb_spots *spots, const struct kb_frame *frame, struct kb_spot *spot)
{
	const struct kb_symbol *symbol = &frame->symbol;

	*spot = (struct kb_spot) { symbol->id, frame->line_id, symbol->inlined };
	if (!kb_spots_has(spots, symbol->id) && note_symbol(spots, symbol))
		return -ENOMEM;
	if (frame->line_id && (frame->line_id >= spots->max_lines || !spots->lines[frame->line_id].file))
		return note_line(spots, frame);
	return 0;
}

const struct kb_spot_symbol *kb_spots_symbol(const struct kb_spots *spots, uint32_t id)
{
	static const struct kb_spot_symbol none = { .name = "", .image = "", .image_base = "" };

	return kb_spots_has(spots, id) ? &spots->symbols[id] : &none;
}

const struct kb_spot_line *kb_spots_line(const struct kb_spots *spots, uint32_t id)
{
	static const struct kb_spot_line none = { .file = "" };

	return id < spots->max_lines && spots->lines[id].file ? &spots->lines[id] : &none;
}
