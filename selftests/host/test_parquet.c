// SPDX-License-Identifier: MIT
/* The codec of Parquet, read back by a reader of its own. */
#include <errno.h>

#include "format/parquet/encode.h"
#include "format/parquet/parquet.h"
#include "format/parquet/thrift.h"
#include "format/zstd.h"

#include "../lib/random.h"
#include "../lib/tap.h"
#include "parquet_reader.h"

#define MOST	3000	/* rows of a group */
#define GROUPS	3

/* ---- encodings ---- */

static struct bytes content(const struct kb_out *out)
{
	size_t size;
	const uint8_t *data = kb_out_data(out, &size);

	return (struct bytes) { data, data + size };
}

/* Numbers with long runs, short ones, and none. */
static void random_numbers(uint32_t *to, size_t nr, unsigned int width)
{
	uint32_t mask = width == 32 ? UINT32_MAX : (1U << width) - 1, value = 0;
	uint64_t every = 1 + random_below(40);

	for (size_t i = 0; i < nr; i++) {
		if (!random_below(every))
			value = (uint32_t)random_u64() & mask;
		to[i] = value;
	}
}

static bool hybrid_round_trip(size_t nr, unsigned int width)
{
	static uint32_t in[MOST], out[MOST];
	struct kb_out *to;

	random_numbers(in, nr, width);
	if (kb_out_memory(&to))
		return false;
	kb_parquet_put_hybrid(to, in, nr, width);
	get_hybrid(content(to), width, out, nr);
	kb_out_destroy(to);
	return !broken && memcmp(in, out, nr * sizeof(*in)) == 0;
}

static bool delta_round_trip(size_t nr)
{
	static uint64_t in[MOST], out[MOST];
	unsigned int shift = (unsigned int)random_below(64);
	struct kb_out *to;

	for (size_t i = 0; i < nr; i++)
		in[i] = random_below(50) ? (i ? in[i - 1] : 0) + (random_u64() >> shift) :
			random_u64();
	if (kb_out_memory(&to))
		return false;
	kb_parquet_put_delta(to, in, nr);
	get_delta(content(to), out, nr);
	kb_out_destroy(to);
	return !broken && memcmp(in, out, nr * sizeof(*in)) == 0;
}

static void encodings(void)
{
	bool hybrid = true, delta = true;

	for (int i = 0; i < 600; i++) {
		hybrid &= hybrid_round_trip(random_below(300), 1 + i % 32);
		delta &= delta_round_trip(random_below(600));
	}
	for (size_t nr = 0; nr < 140; nr++) {
		hybrid &= hybrid_round_trip(nr, 3);
		delta &= delta_round_trip(nr);
	}
	tap_ok(hybrid, "runs_and_packed_bits_are_read_back");
	tap_ok(delta, "deltas_of_any_64_bits_are_read_back");
}

/* Bytes as in the documentation of the encodings. */
static void documented_bytes(void)
{
	static const uint32_t eight[] = { 0, 1, 2, 3, 4, 5, 6, 7 };
	static const uint64_t five[] = { 7, 5, 3, 1, 2, 3, 4, 5 };
	struct kb_thrift thrift;
	struct kb_out *out;

	if (kb_out_memory(&out))
		return;
	kb_parquet_put_hybrid(out, eight, 8, 3);
	tap_ok(content(out).end - content(out).at == 4 &&
	       memcmp(content(out).at, "\x03\x88\xc6\xfa", 4) == 0, "eight_values_are_packed_as_documented");
	kb_out_clear(out);
	kb_parquet_put_delta(out, five, 8);
	/* deltas -2 -2 -2 1 1 1 1 relative to -2: widths 2 0 0 0 */
	tap_ok(content(out).end - content(out).at == 18 &&
	       memcmp(content(out).at, "\x80\x01\x04\x08\x0e\x03\x02\x00\x00\x00\xc0\x3f", 12) == 0,
	       "the_documented_deltas_are_packed_so");
	kb_out_clear(out);
	thrift = kb_thrift_begin(out);
	kb_thrift_i32(&thrift, 1, -1);
	kb_thrift_bool(&thrift, 3, true);
	kb_thrift_i64(&thrift, 40, 64);
	kb_thrift_end(&thrift);
	tap_ok(content(out).end - content(out).at == 8 &&
	       memcmp(content(out).at, "\x15\x01\x21\x06\x50\x80\x01\x00", 8) == 0,
	       "fields_have_the_bytes_of_the_compact_protocol");
	kb_out_destroy(out);
}

/* ---- files ---- */

enum { TIME, SMALL, WIDE, ADDRESS, FLAG, LEVEL, NOTE, NAME, STACK, SIZES, COLUMNS };

static const struct kb_parquet_column columns[COLUMNS] = {
	[TIME] = { "time", KB_PARQUET_I64, false, false },
	[SMALL] = { "small", KB_PARQUET_I64, true, false },
	[WIDE] = { "wide", KB_PARQUET_I64, true, false },
	[ADDRESS] = { "address", KB_PARQUET_U64, false, false },
	[FLAG] = { "flag", KB_PARQUET_BOOL, true, false },
	[LEVEL] = { "level", KB_PARQUET_F64, true, false },
	[NOTE] = { "note", KB_PARQUET_TEXT, true, false },
	[NAME] = { "name", KB_PARQUET_NAME, true, false },
	[STACK] = { "stack", KB_PARQUET_NAME, false, true },
	[SIZES] = { "sizes", KB_PARQUET_I64, false, true },
};

#define NAMES	500

static struct group {
	uint64_t rows;
	uint64_t numbers[COLUMNS][8 * MOST];	/* also those of lists */
	uint32_t names[COLUMNS][8 * MOST];
	uint8_t flags[MOST], missing[COLUMNS][MOST];
	uint64_t ends[COLUMNS][MOST];
	char notes[32 * MOST];
	struct kb_parquet_values values[COLUMNS];
} groups[GROUPS];
static struct kb_text names[NAMES];

static void random_group(struct group *group)
{
	uint64_t none = random_below(4), note = 0, now = random_u64() >> 2;	/* none: how many are missing */

	group->rows = 1 + random_below(random_below(2) ? 20 : MOST);
	for (uint64_t row = 0; row < group->rows; row++) {
		double level = (double)random_below(1000) / 8 - 50;

		now += random_below(100000);
		group->numbers[TIME][row] = now;
		group->numbers[SMALL][row] = random_below(9) - 4;
		group->numbers[WIDE][row] = random_u64();
		group->numbers[ADDRESS][row] = random_u64();
		group->flags[row] = random_below(2) ? (uint8_t)(1 + random_below(255)) : 0;
		memcpy(&group->numbers[LEVEL][row], &level, sizeof(level));
		for (uint64_t length = random_below(30); length; length--)
			group->notes[note++] = (char)(' ' + random_below(90));
		group->ends[NOTE][row] = note;
		group->names[NAME][row] = (uint32_t)random_below(NAMES);
		for (int list = STACK; list <= SIZES; list++) {
			uint64_t at = row ? group->ends[list][row - 1] : 0;

			for (uint64_t length = random_below(8) & -random_below(2); length; length--) {
				group->names[list][at] = (uint32_t)random_below(NAMES);
				group->numbers[list][at++] = random_magnitude();
			}
			group->ends[list][row] = at;
		}
		for (int i = 0; i < COLUMNS; i++)
			group->missing[i][row] = columns[i].optional && random_below(4) < none;
	}
	for (int i = 0; i < COLUMNS; i++)
		group->values[i] = (struct kb_parquet_values) {
			.values = columns[i].type == KB_PARQUET_NAME ? (void *)group->names[i] :
				  i == FLAG ? (void *)group->flags :
				  i == NOTE ? (void *)group->notes : (void *)group->numbers[i],
			.missing = none ? group->missing[i] : NULL, .ends = group->ends[i],
		};
	if (!none)
		memset(group->missing, 0, sizeof(group->missing));
}

static bool write_file(struct kb_out *out, enum kb_parquet_codec codec)
{
	struct kb_parquet_work *work;
	struct kb_parquet *parquet;
	int ret;

	if (kb_parquet_work_create(&work, codec))
		return false;
	ret = kb_parquet_create(&parquet, work, out, columns, COLUMNS);
	for (int i = 0; i < GROUPS && !ret; i++)
		ret = kb_parquet_group(parquet, groups[i].rows, groups[i].values, TIME, names, NAMES);
	ret = ret ? ret : kb_parquet_finish(parquet);
	kb_parquet_destroy(parquet);
	kb_parquet_work_destroy(work);
	return !ret;
}

static bool same_text(struct bytes got, const char *want, uint64_t length)
{
	return (uint64_t)(got.end - got.at) == length && memcmp(got.at, want, length) == 0;
}

/* What a value of the column is in the file, plain, at @at of what was given; NULL-terminated not. */
static struct bytes plain(const struct group *group, int column, uint64_t at, uint8_t room[8])
{
	struct kb_text text = { (char *)room, 8 };

	if (columns[column].type == KB_PARQUET_NAME) {
		text = names[group->names[column][at]];
	} else if (column == NOTE) {
		uint64_t begin = at ? group->ends[NOTE][at - 1] : 0;

		text = (struct kb_text) { group->notes + begin, group->ends[NOTE][at] - begin };
	} else if (column == FLAG) {
		*room = group->flags[at] != 0;
		text.length = 1;
	} else {
		for (int i = 0; i < 8; i++)
			room[i] = (uint8_t)(group->numbers[column][at] >> 8 * i);
	}
	return (struct bytes) { (const uint8_t *)text.data, (const uint8_t *)text.data + text.length };
}

static struct bytes next_plain(struct bytes *from, int column)
{
	bool text = columns[column].type == KB_PARQUET_NAME || column == NOTE;

	return get_bytes(from, text ? get_le(from, 4) : 8);
}

static int64_t compare(int column, struct bytes one, struct bytes other)
{
	uint64_t a, b;
	double x, y;
	size_t length = (size_t)(one.end - one.at), rest = (size_t)(other.end - other.at);
	int order;

	if (columns[column].type == KB_PARQUET_NAME || column == NOTE || column == FLAG) {
		order = memcmp(one.at, other.at, length < rest ? length : rest);
		return order ? order : (int64_t)length - (int64_t)rest;
	}
	a = get_le(&one, 8);
	b = get_le(&other, 8);
	if (column == ADDRESS)
		return a < b ? -1 : a > b;
	if (column != LEVEL)
		return (int64_t)a < (int64_t)b ? -1 : (int64_t)a > (int64_t)b;
	memcpy(&x, &a, 8);
	memcpy(&y, &b, 8);
	return x < y ? -1 : x > y;
}

/* The statistics hold for all values, and are reached. */
static bool bounds_are_right(const struct group *group, int column, struct bytes meta)
{
	struct bytes statistics = struct_of(meta, 12), least = text_of(statistics, 6),
		     most = text_of(statistics, 5);
	uint64_t missing = 0, at_least = 0, at_most = 0;
	uint8_t room[8];

	for (uint64_t row = 0; row < group->rows; row++) {
		struct bytes value = plain(group, column, row, room);

		if (group->missing[column][row]) {
			missing++;
			continue;
		}
		if (!least.at || compare(column, value, least) < 0 || compare(column, value, most) > 0)
			return false;
		at_least += compare(column, value, least) == 0;
		at_most += compare(column, value, most) == 0;
	}
	return (uint64_t)number_of(statistics, 3) == missing &&
	       (missing == group->rows ? !least.at : at_least && at_most);
}

/* The values of the page that follow its levels, one behind the other as in @entries or themselves. */
static bool values_are_right(const struct group *group, int column, struct bytes page, int encoding,
			     struct bytes dictionary, const uint8_t *skipped, uint64_t count)
{
	static uint32_t indices[8 * MOST];
	static uint64_t deltas[8 * MOST];
	static struct bytes entries[8 * MOST];
	uint64_t nr = 0, at = 0, nr_entries = 0;
	uint8_t room[8];

	for (uint64_t i = 0; i < count; i++)
		nr += !skipped[i];
	while (dictionary.at < dictionary.end && !broken)
		entries[nr_entries++] = next_plain(&dictionary, column);
	if (encoding == 8) {
		unsigned int width = get_byte(&page);

		get_hybrid(page, width, indices, nr);
	} else if (encoding == 5) {
		get_delta(page, deltas, nr);
	}
	for (uint64_t i = 0; i < count && !broken; i++) {
		struct bytes want = plain(group, column, i, room), got;
		uint64_t bit;

		if (skipped[i])
			continue;
		if (encoding == 5) {
			bit = deltas[at++];
			if (bit != group->numbers[column][i])
				return false;
			continue;
		}
		if (column == FLAG) {
			bit = page.at[at / 8] >> at % 8 & 1;
			at++;
			if (bit != *want.at)
				return false;
			continue;
		}
		if (encoding == 8) {
			if (indices[at] >= nr_entries)
				return false;
			got = entries[indices[at++]];
		} else {
			got = next_plain(&page, column);
		}
		if (!same_text(got, (const char *)want.at, (uint64_t)(want.end - want.at)))
			return false;
	}
	return !broken;
}

static bool levels_are_right(const struct group *group, int column, struct bytes *page, uint64_t values)
{
	static uint32_t repeats[9 * MOST], defined[9 * MOST];
	uint64_t at = 0;

	if (columns[column].list)
		get_hybrid(get_bytes(page, get_le(page, 4)), 1, repeats, values);
	if (columns[column].list || columns[column].optional)
		get_hybrid(get_bytes(page, get_le(page, 4)), 1, defined, values);
	for (uint64_t row = 0; row < group->rows; row++) {
		uint64_t begin = row ? group->ends[column][row - 1] : 0;
		uint64_t length = group->ends[column][row] - begin;

		if (!columns[column].list) {
			if (columns[column].optional && defined[at] == group->missing[column][row])
				return false;
			at++;
			continue;
		}
		for (uint64_t i = 0; i < (length ? length : 1); i++, at++)
			if (repeats[at] != (i > 0) || defined[at] != (length > 0))
				return false;
	}
	return at == values;
}

static bool chunk_is_right(struct bytes file, const struct group *group, int column, struct bytes meta,
			   int *encoding)
{
	static const uint8_t none[8 * MOST];
	int codec = (int)number_of(meta, 4);
	uint64_t values = (uint64_t)number_of(meta, 5);
	struct bytes header, dictionary = { NULL, NULL }, page, data, any;
	bool right;

	if (field_of(meta, 11, &any)) {
		dictionary = read_page(file, (uint64_t)number_of(meta, 11), codec, &header);
		broken |= number_of(header, 1) != 2;
	}
	page = data = read_page(file, (uint64_t)number_of(meta, 9), codec, &header);
	*encoding = (int)number_of(struct_of(header, 5), 2);
	right = number_of(header, 1) == 0 &&
		(uint64_t)number_of(struct_of(header, 5), 1) == values &&
		levels_are_right(group, column, &data, values) &&
		values_are_right(group, column, data, *encoding, dictionary,
				 columns[column].list ? none : group->missing[column],
				 columns[column].list ? group->ends[column][group->rows - 1] :
				 group->rows) &&
		(columns[column].list || bounds_are_right(group, column, meta));
	free((void *)page.at);
	free((void *)dictionary.at);
	return right && !broken;
}

/* Was each encoding used for what it is there for? */
static int seen[COLUMNS];

static bool file_is_right(struct bytes file)
{
	uint64_t length = (uint64_t)(file.end - file.at), rows = 0, size;
	struct bytes end = { file.end - 8, file.end }, meta, groups_at;

	if (length < 12 || memcmp(file.at, "PAR1", 4) || memcmp(file.end - 4, "PAR1", 4))
		return false;
	size = get_le(&end, 4);
	if (size > length - 12)
		return false;
	meta = (struct bytes) { file.end - 8 - size, file.end - 8 };
	groups_at = meta;
	if (list_of(&groups_at, 4) != GROUPS)
		return false;
	for (int i = 0; i < GROUPS; i++) {
		struct bytes chunks = groups_at, sorted = groups_at;

		rows += groups[i].rows;
		if ((uint64_t)number_of(groups_at, 3) != groups[i].rows || list_of(&sorted, 4) != 1 ||
		    number_of(sorted, 1) != TIME || list_of(&chunks, 1) != COLUMNS)
			return false;
		for (int column = 0; column < COLUMNS; column++) {
			int encoding;

			if (!chunk_is_right(file, &groups[i], column, struct_of(chunks, 3), &encoding)) {
				tap_note("group %d, column %s", i, columns[column].name);
				return false;
			}
			if (groups[i].rows > MOST / 2)
				seen[column] |= 1 << encoding;
			skip(&chunks, 12);
		}
		skip(&groups_at, 12);
	}
	return (uint64_t)number_of(meta, 3) == rows && !broken;
}

static void files(enum kb_parquet_codec codec, const char *promise)
{
	bool right = true;

	if (codec == KB_PARQUET_ZSTD && !kb_zstd()) {
		tap_skip(promise, "no libzstd.so.1 here");
		return;
	}
	for (int round = 0; round < 20 && right; round++) {
		struct kb_out *out;

		for (int i = 0; i < GROUPS; i++)
			random_group(&groups[i]);
		right = !kb_out_memory(&out) && write_file(out, codec) && file_is_right(content(out));
		kb_out_destroy(out);
	}
	tap_ok(right, promise);
}

static int is_full(void *context, const void *data, size_t size)
{
	(void)context;
	(void)data;
	return size > 3 ? -ENOSPC : 0;
}

static void errors(void)
{
	struct kb_parquet_work *work = NULL;
	struct kb_parquet *parquet;
	struct kb_out *out;
	int ret = 0;

	if (kb_out_function(&out, is_full, NULL) || kb_parquet_work_create(&work, KB_PARQUET_PLAIN) ||
	    kb_parquet_create(&parquet, work, out, columns, COLUMNS))
		return;
	for (int i = 0; i < 100 && !ret; i++)
		ret = kb_parquet_group(parquet, groups[0].rows, groups[0].values, TIME, names, NAMES);
	tap_is(kb_parquet_finish(parquet), -ENOSPC, "a_full_disk_is_told_at_the_end");
	kb_parquet_destroy(parquet);
	kb_parquet_work_destroy(work);
	kb_out_destroy(out);
}

int main(void)
{
	random_start();
	for (int i = 0; i < NAMES; i++) {
		char *name = malloc(200);

		memset(name, 'a' + i % 26, 200);
		snprintf(name, 200, "name %d", i);
		names[i] = (struct kb_text) { name, i == 7 ? 0 : i == 8 ? 60 : strlen(name) };
	}
	encodings();
	documented_bytes();
	files(KB_PARQUET_PLAIN, "files_are_read_back");
	files(KB_PARQUET_GZIP, "files_with_gzip_are_read_back");
	files(KB_PARQUET_ZSTD, "files_with_zstd_are_read_back");
	tap_ok(seen[TIME] == 1 << 5 && seen[WIDE] == 1 << 5, "numbers_that_differ_become_deltas");
	tap_ok((seen[SMALL] & 1 << 8) && seen[NAME] == 1 << 8, "few_different_values_become_a_dictionary");
	errors();
	return tap_done();
}
