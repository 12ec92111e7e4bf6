// SPDX-License-Identifier: MIT
/* Answers are cached by address: samples repeat addresses, and look-ups in DWARF are slow. */
#include <errno.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "sym/image/load.h"
#include "sym/lines/lines.h"
#include "sym/symbolizer/line_cache.h"

struct cached {
	uint64_t key[2];
	uint32_t first, nr;		/* in frames; nr 0: not looked up yet */
};

struct numbered {
	uint64_t key[2];
	uint32_t id;			/* + 1 */
};

void kb_line_cache_init(struct kb_line_cache *frames)
{
	kb_table_init(&frames->cache, sizeof(struct cached), 2);
	kb_table_init(&frames->lines, sizeof(struct numbered), 2);
	kb_table_init(&frames->functions, sizeof(struct numbered), 2);
}

void kb_line_cache_release(struct kb_line_cache *frames)
{
	kb_table_release(&frames->cache);
	kb_table_release(&frames->lines);
	kb_table_release(&frames->functions);
	free(frames->frames);
	tdestroy(frames->strings, free);
}

static int compare(const void *left, const void *right)
{
	return strcmp(left, right);
}

/* The only copy of a string, so that equal strings have equal addresses; "" without memory. */
static const char *intern(struct kb_line_cache *frames, const char *text)
{
	char **node = tfind(text, &frames->strings, compare), *copy;

	if (node)
		return *node;
	copy = strdup(text);
	if (copy && tsearch(copy, &frames->strings, compare))
		return copy;
	free(copy);
	return "";
}

static uint32_t line_id(struct kb_line_cache *frames, const char *file, uint32_t line)
{
	uint64_t key[2] = { (uintptr_t)file, line };
	struct numbered *row;

	if (!*file)
		return 0;
	row = kb_table_get(&frames->lines, key);
	if (row && !row->id)
		row->id = frames->lines.nr;
	return row ? row->id : 0;
}

/* Name an inlined function. Its image and place are those of @symbol. */
static void name_inlined(struct kb_line_cache *frames, const struct kb_symbol *symbol,
			 const char *function, struct kb_symbol *out)
{
	char *readable = frames->demangler ? kb_demangle(frames->demangler, function) : NULL;
	uint64_t key[2];
	struct numbered *row;

	*out = *symbol;
	out->name = intern(frames, readable ? readable : function);
	out->raw_name = readable ? intern(frames, function) : out->name;
	out->inlined = true;
	free(readable);
	key[0] = (uintptr_t)symbol->image;
	key[1] = (uintptr_t)out->name;
	row = kb_table_get(&frames->functions, key);
	if (row && !row->id)
		row->id = ++*frames->nr_ids;
	out->id = row ? row->id - 1 : symbol->id;
}

static int ask(struct kb_line_cache *frames, struct kb_lines *lines, uint64_t address,
	       const struct kb_symbol *symbol, struct cached *cached)
{
	struct kb_lines_frame found[KB_LINES_DEPTH + 1] = { { .file = "" } };
	uint32_t nr = lines ? kb_lines_find(lines, address, frames->inlined, found) : 1, i;

	if (!KB_ARRAY_ROOM(frames->frames, frames->max_frames, (size_t)frames->nr_frames + nr))
		return -ENOMEM;
	cached->first = frames->nr_frames;
	cached->nr = nr;
	for (i = 0; i < nr; i++) {
		struct kb_frame *frame = &frames->frames[frames->nr_frames++];

		*frame = (struct kb_frame) {
			.symbol = *symbol,
			.file = *found[i].file ? intern(frames, found[i].file) : "",
			.line = found[i].line,
		};
		frame->line_id = line_id(frames, frame->file, frame->line);
		if (found[i].function)
			name_inlined(frames, symbol, found[i].function, &frame->symbol);
	}
	return 0;
}

uint32_t kb_line_cache_get(struct kb_line_cache *frames, struct kb_image *image, uint64_t address,
			   const struct kb_symbol *symbol, const struct kb_frame **out)
{
	uint64_t key[2] = { (uintptr_t)image, address };
	struct cached *cached = kb_table_get(&frames->cache, key);
	uint32_t i;

	if (!cached || (!cached->nr && ask(frames, image->lines, address, symbol, cached)))
		return 0;
	/* The image may be mapped at another address now. */
	for (i = cached->first; i < cached->first + cached->nr; i++)
		frames->frames[i].symbol.address = symbol->address;
	*out = &frames->frames[cached->first];
	return cached->nr;
}

void kb_line_cache_place(struct kb_line_cache *frames, const char *file, uint32_t line,
			 struct kb_frame *frame)
{
	frame->file = *file ? intern(frames, file) : "";
	frame->line = line;
	frame->line_id = line_id(frames, frame->file, line);
}
