// SPDX-License-Identifier: MIT
/*
 * See parquet.h. A column of a group becomes a dictionary, if it has one, and one page: repetition
 * levels, definition levels, values. Values that are missing are not among these.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/array.h"
#include "base/hash.h"
#include "format/parquet/encode.h"
#include "format/parquet/meta.h"
#include "format/parquet/parquet.h"
#include "format/wire.h"

#define DICTIONARY_MOST	4096U		/* different numbers that a dictionary may have */
#define SLOTS		(4 * DICTIONARY_MOST)	/* of the hash, a power of two */

struct kb_parquet_work {
	struct kb_parquet_pack *pack;
	struct kb_out *page, *dictionary, *packed;	/* to memory */
	uint64_t *numbers;		/* values that are not missing */
	uint32_t *indices, *levels;
	size_t max_numbers, max_indices, max_levels;

	/* the dictionary of a column: its numbers, or the caller's names; each once */
	uint64_t *entries;
	size_t nr_entries, max_entries;
	uint16_t slots[SLOTS];		/* of numbers: entry + 1, 0 = free */
	uint64_t seed;			/* so that no capture can force collisions */
	uint64_t *places;		/* of names: entry, above it the round in which it is one */
	size_t max_places;
	uint32_t round;
};

struct kb_parquet {
	struct kb_parquet_work *work;
	struct kb_out *out;
	const struct kb_parquet_column *columns;
	uint32_t nr_columns;
	struct kb_parquet_rows *groups;
	struct kb_parquet_chunk *chunks;
	uint32_t nr_groups;
	size_t max_groups, max_chunks;
};

/* ---- create, destroy ---- */

int kb_parquet_work_create(struct kb_parquet_work **out, enum kb_parquet_codec codec)
{
	struct kb_parquet_work *work = calloc(1, sizeof(*work));
	int ret;

	if (!work)
		return -ENOMEM;
	ret = kb_parquet_pack_create(&work->pack, codec) ?: kb_out_memory(&work->page) ?:
	      kb_out_memory(&work->dictionary) ?: kb_out_memory(&work->packed);
	if (ret) {
		kb_parquet_work_destroy(work);
		return ret;
	}
	work->seed = kb_hash_seed(work);
	*out = work;
	return 0;
}

void kb_parquet_work_destroy(struct kb_parquet_work *work)
{
	if (!work)
		return;
	kb_parquet_pack_destroy(work->pack);
	kb_out_destroy(work->page);
	kb_out_destroy(work->dictionary);
	kb_out_destroy(work->packed);
	free(work->numbers);
	free(work->indices);
	free(work->levels);
	free(work->entries);
	free(work->places);
	free(work);
}

int kb_parquet_create(struct kb_parquet **out, struct kb_parquet_work *work, struct kb_out *to,
		      const struct kb_parquet_column *columns, uint32_t nr_columns)
{
	struct kb_parquet *parquet = calloc(1, sizeof(*parquet));

	if (!parquet)
		return -ENOMEM;
	parquet->work = work;
	parquet->out = to;
	parquet->columns = columns;
	parquet->nr_columns = nr_columns;
	kb_out_bytes(to, KB_PARQUET_MAGIC, strlen(KB_PARQUET_MAGIC));
	*out = parquet;
	return 0;
}

void kb_parquet_destroy(struct kb_parquet *parquet)
{
	if (!parquet)
		return;
	free(parquet->groups);
	free(parquet->chunks);
	free(parquet);
}

/* ---- pages ---- */

static void write_page(struct kb_parquet *parquet, struct kb_parquet_chunk *chunk,
		       const struct kb_out *content, uint64_t values, bool dictionary)
{
	struct kb_parquet_work *work = parquet->work;
	uint64_t begin = kb_out_count(parquet->out);
	size_t unpacked, packed;
	const void *data = kb_out_data(content, &unpacked);
	struct kb_parquet_page page = {
		.unpacked = (uint32_t)unpacked, .values = (uint32_t)values, .dictionary = dictionary,
		.encoding = dictionary ? KB_PARQUET_ENCODING_PLAIN : chunk->encoding,
	};

	kb_out_clear(work->packed);
	kb_parquet_pack(work->pack, work->packed, data, unpacked);
	if (kb_out_error(content) || kb_out_error(work->packed)) {
		kb_out_fail(parquet->out, kb_out_error(content) ?: kb_out_error(work->packed));
		return;
	}
	data = kb_out_data(work->packed, &packed);
	page.packed = (uint32_t)packed;
	page.crc = (uint32_t)crc32(0, data, (uInt)packed);
	*(dictionary ? &chunk->dictionary_at : &chunk->data_at) = begin;
	kb_parquet_put_page_header(parquet->out, &page);
	chunk->unpacked += kb_out_count(parquet->out) - begin + unpacked;
	kb_out_bytes(parquet->out, data, packed);
	chunk->packed += kb_out_count(parquet->out) - begin;
}

/* Levels of at most 1, after their length in bytes. */
static void put_levels(struct kb_out *page, const uint32_t *levels, size_t nr)
{
	uint64_t begin = kb_out_count(page);
	uint8_t *at = kb_out_reserve(page, 4);

	if (!at)
		return;
	kb_out_commit(page, at + 4);
	kb_parquet_put_hybrid(page, levels, nr, 1);
	/* nothing has left this output, so its content begins at 0 */
	if (!kb_out_error(page))
		kb_store32(page->buffer + begin, (uint32_t)(kb_out_count(page) - begin - 4),
			   KB_SWAP_LE);
}

/* A level for each value of a list, and for each empty list: is it after another one; is it a value? */
static int put_list_levels(struct kb_parquet_work *work, const struct kb_parquet_values *values,
			   uint64_t rows, struct kb_parquet_chunk *chunk)
{
	size_t most = rows + values->ends[rows - 1], nr = 0;

	if (!KB_ARRAY_ROOM(work->levels, work->max_levels, 2 * most))
		return -ENOMEM;
	for (uint64_t row = 0, at = 0; row < rows; row++) {
		uint64_t begin = at;

		for (; at < values->ends[row]; at++) {
			work->levels[nr] = at > begin;
			work->levels[most + nr++] = 1;
		}
		if (at == begin) {
			work->levels[nr] = 0;
			work->levels[most + nr++] = 0;
		}
	}
	chunk->values = nr;
	put_levels(work->page, work->levels, nr);
	put_levels(work->page, work->levels + most, nr);
	return 0;
}

static int put_row_levels(struct kb_parquet_work *work, const struct kb_parquet_values *values,
			  uint64_t rows, struct kb_parquet_chunk *chunk)
{
	if (!KB_ARRAY_ROOM(work->levels, work->max_levels, rows))
		return -ENOMEM;
	for (uint64_t row = 0; row < rows; row++) {
		work->levels[row] = !values->missing || !values->missing[row];
		chunk->missing += !work->levels[row];
	}
	put_levels(work->page, work->levels, rows);
	return 0;
}

/* ---- bounds ---- */

static bool set_bound(struct kb_parquet_bound *bound, struct kb_text text)
{
	if (text.length > sizeof(bound->bytes))
		return false;
	bound->length = (uint8_t)text.length;
	if (text.length)
		memcpy(bound->bytes, text.data, text.length);
	return true;
}

static void set_number_bounds(struct kb_parquet_chunk *chunk, uint64_t least, uint64_t most)
{
	chunk->bounded = true;
	chunk->least.length = chunk->most.length = 8;
	kb_store64(chunk->least.bytes, least, KB_SWAP_LE);
	kb_store64(chunk->most.bytes, most, KB_SWAP_LE);
}

/* @flip: what makes the order of the type that of unsigned numbers. */
static void bound_numbers(struct kb_parquet_chunk *chunk, const uint64_t *numbers, size_t nr,
			  uint64_t flip)
{
	uint64_t least = UINT64_MAX, most = 0;

	for (size_t i = 0; i < nr; i++) {
		uint64_t key = numbers[i] ^ flip;

		least = key < least ? key : least;
		most = key > most ? key : most;
	}
	if (nr)
		set_number_bounds(chunk, least ^ flip, most ^ flip);
}

/* No bounds if one is not a number. The format wants -0 as the least zero, +0 as the largest one. */
static void bound_doubles(struct kb_parquet_chunk *chunk, const uint64_t *numbers, size_t nr)
{
	double least = 0, most = 0;
	uint64_t bounds[2];

	for (size_t i = 0; i < nr; i++) {
		double value;

		memcpy(&value, &numbers[i], sizeof(value));
		if (value != value)
			return;
		least = !i || value < least ? value : least;
		most = !i || value > most ? value : most;
	}
	if (least == 0)
		least = -0.0;
	if (most == 0)
		most = 0.0;
	memcpy(&bounds[0], &least, sizeof(least));
	memcpy(&bounds[1], &most, sizeof(most));
	if (nr)
		set_number_bounds(chunk, bounds[0], bounds[1]);
}

static bool is_before(struct kb_text one, struct kb_text other)
{
	size_t common = one.length < other.length ? one.length : other.length;
	int order = common ? memcmp(one.data, other.data, common) : 0;

	return order ? order < 0 : one.length < other.length;
}

static void bound_text(struct kb_text text, bool first, struct kb_text *least, struct kb_text *most)
{
	if (first || is_before(text, *least))
		*least = text;
	if (first || is_before(*most, text))
		*most = text;
}

static void set_text_bounds(struct kb_parquet_chunk *chunk, struct kb_text least,
			    struct kb_text most)
{
	chunk->bounded = set_bound(&chunk->least, least) && set_bound(&chunk->most, most);
}

/* ---- values ---- */

static bool is_missing(const struct kb_parquet_column *column,
		       const struct kb_parquet_values *values, uint64_t row)
{
	return column->optional && values->missing && values->missing[row];
}

/* The page of values that are numbers of a dictionary's @nr_entries entries. */
static void put_indices(struct kb_parquet_work *work, struct kb_parquet_chunk *chunk, size_t nr,
			size_t nr_entries)
{
	unsigned int width = kb_parquet_width(nr_entries ? nr_entries - 1 : 0);
	uint8_t *at = kb_out_reserve(work->page, 1);

	width = width ? width : 1;	/* some readers know no width of 0 */
	chunk->encoding = KB_PARQUET_ENCODING_DICTIONARY;
	if (!at)
		return;
	*at = (uint8_t)width;
	kb_out_commit(work->page, at + 1);
	kb_parquet_put_hybrid(work->page, work->indices, nr, width);
}

/* The entry of @number, a new one if need be; UINT32_MAX: there are too many. */
static uint32_t find_entry(struct kb_parquet_work *work, uint64_t number)
{
	uint32_t at = (uint32_t)kb_hash_word(work->seed, number) % SLOTS;

	while (work->slots[at] && work->entries[work->slots[at] - 1] != number)
		at = (at + 1) % SLOTS;
	if (!work->slots[at]) {
		if (work->nr_entries == DICTIONARY_MOST)
			return UINT32_MAX;
		work->entries[work->nr_entries++] = number;
		work->slots[at] = (uint16_t)work->nr_entries;
	}
	return work->slots[at] - 1U;
}

/* Numbers as entries of a dictionary. Returns 1; 0: it would be longer than @limit bytes; -ENOMEM. */
static int make_dictionary(struct kb_parquet_work *work, size_t nr, size_t limit)
{
	if (!KB_ARRAY_ROOM(work->entries, work->max_entries, DICTIONARY_MOST) ||
	    !KB_ARRAY_ROOM(work->indices, work->max_indices, nr))
		return -ENOMEM;
	memset(work->slots, 0, sizeof(work->slots));
	work->nr_entries = 0;
	for (size_t i = 0; i < nr; i++) {
		work->indices[i] = find_entry(work, work->numbers[i]);
		if (work->indices[i] == UINT32_MAX)
			return 0;
	}
	return work->nr_entries * 8 + nr * kb_parquet_width(work->nr_entries - 1) / 8 < limit;
}

static int put_numbers(struct kb_parquet *parquet, const struct kb_parquet_column *column,
		       struct kb_parquet_chunk *chunk, size_t nr)
{
	struct kb_parquet_work *work = parquet->work;
	uint64_t begin = kb_out_count(work->page);
	int shorter;

	if (column->type == KB_PARQUET_F64) {
		bound_doubles(chunk, work->numbers, nr);
		chunk->encoding = KB_PARQUET_ENCODING_PLAIN;
		kb_parquet_put_plain(work->page, work->numbers, nr);
	} else {
		bound_numbers(chunk, work->numbers, nr,
			      column->type == KB_PARQUET_I64 ? UINT64_C(1) << 63 : 0);
		chunk->encoding = KB_PARQUET_ENCODING_DELTA;
		kb_parquet_put_delta(work->page, work->numbers, nr);
	}
	shorter = nr ? make_dictionary(work, nr, kb_out_count(work->page) - begin) : 0;
	if (shorter <= 0)
		return shorter;
	work->page->at = work->page->buffer + begin;
	put_indices(work, chunk, nr, work->nr_entries);
	kb_out_clear(work->dictionary);
	kb_parquet_put_plain(work->dictionary, work->entries, work->nr_entries);
	write_page(parquet, chunk, work->dictionary, work->nr_entries, true);
	return 0;
}

/* Numbers of the caller's names become those of a dictionary that has what the column needs. */
static int put_names(struct kb_parquet *parquet, const struct kb_parquet_column *column,
		     const struct kb_parquet_values *values, struct kb_parquet_chunk *chunk,
		     uint64_t count, const struct kb_text *names, uint32_t nr_names)
{
	struct kb_parquet_work *work = parquet->work;
	struct kb_text least = { 0 }, most = { 0 };
	const uint32_t *numbers = values->values;
	uint64_t round = (uint64_t)++work->round << 32;
	size_t known = work->max_places, nr = 0;
	uint32_t nr_entries = 0;

	if (!KB_ARRAY_ROOM(work->places, work->max_places, nr_names) ||
	    !KB_ARRAY_ROOM(work->indices, work->max_indices, count))
		return -ENOMEM;
	/* cppcheck-suppress knownConditionTrueFalse ; KB_ARRAY_ROOM() sets it */
	if (work->max_places > known)
		memset(work->places + known, 0, (work->max_places - known) * sizeof(*work->places));
	kb_out_clear(work->dictionary);
	for (uint64_t i = 0; i < count; i++) {
		uint64_t *place;

		if (is_missing(column, values, i))
			continue;
		place = &work->places[numbers[i]];
		if (*place >> 32 != work->round) {
			struct kb_text name = names[numbers[i]];

			bound_text(name, !nr_entries, &least, &most);
			kb_parquet_put_text(work->dictionary, name.data, name.length);
			*place = round | nr_entries++;
		}
		work->indices[nr++] = (uint32_t)*place;
	}
	if (nr_entries)
		set_text_bounds(chunk, least, most);
	put_indices(work, chunk, nr, nr_entries);
	write_page(parquet, chunk, work->dictionary, nr_entries, true);
	return 0;
}

static void put_texts(struct kb_parquet_work *work, const struct kb_parquet_column *column,
		      const struct kb_parquet_values *values, uint64_t rows,
		      struct kb_parquet_chunk *chunk)
{
	struct kb_text least = { 0 }, most = { 0 };
	bool first = true;

	for (uint64_t row = 0, at = 0; row < rows; at = values->ends[row++]) {
		struct kb_text text = { (const char *)values->values + at, values->ends[row] - at };

		if (is_missing(column, values, row))
			continue;
		bound_text(text, first, &least, &most);
		first = false;
		kb_parquet_put_text(work->page, text.data, text.length);
	}
	if (!first)
		set_text_bounds(chunk, least, most);
	chunk->encoding = KB_PARQUET_ENCODING_PLAIN;
}

static int put_bools(struct kb_parquet_work *work, const struct kb_parquet_column *column,
		     const struct kb_parquet_values *values, uint64_t count,
		     struct kb_parquet_chunk *chunk)
{
	const uint8_t *from = values->values;
	uint8_t *to, least = 1, most = 0;
	size_t nr = 0;

	if (!KB_ARRAY_ROOM(work->numbers, work->max_numbers, count / 8 + 1))
		return -ENOMEM;
	to = (uint8_t *)work->numbers;
	for (uint64_t i = 0; i < count; i++) {
		if (is_missing(column, values, i))
			continue;
		to[nr] = from[i] != 0;
		least &= to[nr];
		most |= to[nr++];
	}
	if (nr) {
		set_bound(&chunk->least, (struct kb_text) { (char *)&least, 1 });
		set_bound(&chunk->most, (struct kb_text) { (char *)&most, 1 });
	}
	chunk->bounded = nr;
	chunk->encoding = KB_PARQUET_ENCODING_PLAIN;
	kb_parquet_put_bits(work->page, to, nr);
	return 0;
}

static int gather_numbers(struct kb_parquet_work *work, const struct kb_parquet_column *column,
			  const struct kb_parquet_values *values, uint64_t count, size_t *nr)
{
	const uint64_t *from = values->values;

	*nr = 0;
	if (!KB_ARRAY_ROOM(work->numbers, work->max_numbers, count))
		return -ENOMEM;
	for (uint64_t i = 0; i < count; i++)
		if (!is_missing(column, values, i))
			work->numbers[(*nr)++] = from[i];
	return 0;
}

/* ---- columns and groups ---- */

static int write_column(struct kb_parquet *parquet, const struct kb_parquet_column *column,
			const struct kb_parquet_values *values, uint64_t rows,
			struct kb_parquet_chunk *chunk, const struct kb_text *names,
			uint32_t nr_names)
{
	struct kb_parquet_work *work = parquet->work;
	uint64_t count = column->list ? values->ends[rows - 1] : rows;
	size_t nr;
	int ret = 0;

	*chunk = (struct kb_parquet_chunk) { .values = rows };
	kb_out_clear(work->page);
	if (column->list)
		ret = put_list_levels(work, values, rows, chunk);
	else if (column->optional)
		ret = put_row_levels(work, values, rows, chunk);
	if (ret)
		return ret;
	if (column->type == KB_PARQUET_NAME)
		ret = put_names(parquet, column, values, chunk, count, names, nr_names);
	else if (column->type == KB_PARQUET_TEXT)
		put_texts(work, column, values, rows, chunk);
	else if (column->type == KB_PARQUET_BOOL)
		ret = put_bools(work, column, values, count, chunk);
	else
		ret = gather_numbers(work, column, values, count, &nr) ?:
		      put_numbers(parquet, column, chunk, nr);
	if (!ret)
		write_page(parquet, chunk, work->page, chunk->values, false);
	return ret;
}

int kb_parquet_group(struct kb_parquet *parquet, uint64_t rows,
		     const struct kb_parquet_values *values, uint32_t sorted,
		     const struct kb_text *names, uint32_t nr_names)
{
	size_t known = (size_t)parquet->nr_groups * parquet->nr_columns;
	int ret = 0;

	if (!KB_ARRAY_ROOM(parquet->groups, parquet->max_groups, parquet->nr_groups + 1U) ||
	    !KB_ARRAY_ROOM(parquet->chunks, parquet->max_chunks, known + parquet->nr_columns))
		return kb_out_fail(parquet->out, -ENOMEM);
	parquet->groups[parquet->nr_groups++] = (struct kb_parquet_rows) {
		.rows = rows, .at = kb_out_count(parquet->out), .sorted = sorted,
	};
	for (uint32_t i = 0; i < parquet->nr_columns && !ret; i++)
		ret = write_column(parquet, &parquet->columns[i], &values[i], rows,
				   &parquet->chunks[known + i], names, nr_names);
	return ret ? kb_out_fail(parquet->out, ret) : kb_out_error(parquet->out);
}

int kb_parquet_finish(struct kb_parquet *parquet)
{
	const struct kb_parquet_content content = {
		.columns = parquet->columns, .nr_columns = parquet->nr_columns,
		.codec = kb_parquet_pack_codec(parquet->work->pack),
		.groups = parquet->groups, .nr_groups = parquet->nr_groups,
		.chunks = parquet->chunks,
	};

	kb_parquet_put_end(parquet->out, &content);
	return kb_out_flush(parquet->out);
}
