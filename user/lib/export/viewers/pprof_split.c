// SPDX-License-Identifier: MIT
/*
 * See pprof_split.h. Messages of a profile refer to each other by ids, so what no sample of a part
 * needs is left out, and all else is copied as it is. Strings are referred to by their place: one that
 * is not needed becomes an empty one.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/io/out_packet.h"
#include "export/viewers/pprof_fields.h"
#include "export/viewers/pprof_split.h"
#include "format/base64.h"
#include "format/gzip_whole.h"
#include "format/protobuf.h"
#include "format/protobuf_read.h"

#define UNPACKED_MAX	(1U << 30)	/* bytes of a profile */
#define IDS_MOST	(1U << 18)	/* a part keeps the ids of the whole: they may be more than its bytes */
#define RAW_PROFILE	"\"rawProfile\":\""

/* A message with an id, or a string. */
struct row {
	struct kb_proto_reader message;
	bool used;			/* by the part that is being made */
};

struct rows {
	struct row *rows;
	size_t nr, max;
};

struct sample {
	struct kb_proto_reader message;
	uint64_t samples, waits;
};

struct kb_pprof_split {
	uint8_t *data;			/* unpacked */
	size_t size;
	char *before, *behind;		/* of Parca's text, around the profile; NULL: there is none */
	struct rows strings, mappings, locations, functions;
	uint64_t main;			/* id of the first mapping, which readers take for the program's */
	struct sample *samples;
	size_t nr, max;
};

/* ---- reading ---- */

static struct rows *rows_of(struct kb_pprof_split *split, uint64_t field)
{
	return field == PROFILE_MAPPING ? &split->mappings :
	       field == PROFILE_LOCATION ? &split->locations :
	       field == PROFILE_FUNCTION ? &split->functions : NULL;
}

/* The row with this number, which may be a new one. NULL: no memory, or there can't be so many. */
static struct row *row_at(struct kb_pprof_split *split, struct rows *rows, uint64_t number)
{
	size_t before = rows->nr;

	if (number > split->size && number > IDS_MOST)
		return NULL;
	if (number < before)
		return &rows->rows[number];
	if (!KB_ARRAY_ROOM(rows->rows, rows->max, (size_t)number + 1))
		return NULL;
	rows->nr = (size_t)number + 1;
	memset(rows->rows + before, 0, (rows->nr - before) * sizeof(*rows->rows));
	return &rows->rows[number];
}

static int add_row(struct kb_pprof_split *split, const struct kb_proto_field *field)
{
	struct kb_proto_reader inner = kb_proto_inner(field);
	struct rows *rows = rows_of(split, field->number);
	/* an id is the first field of each of them */
	uint64_t id = rows ? kb_proto_number(inner, LOCATION_ID) : split->strings.nr;
	struct row *row = row_at(split, rows ? rows : &split->strings, id);

	if (!row)
		return -EINVAL;
	row->message = inner;
	if (field->number == PROFILE_MAPPING && !split->main)
		split->main = id;
	return 0;
}

/* Reads the fields of the profile that have messages or strings. */
static int read_profile(struct kb_pprof_split *split)
{
	struct kb_proto_reader reader = kb_proto_reader(split->data, split->size);
	struct kb_proto_field field;
	int more;

	while ((more = kb_proto_read(&reader, &field)) > 0) {
		bool is_row = rows_of(split, field.number) || field.number == PROFILE_STRING;

		if ((is_row || field.number == PROFILE_SAMPLE) && field.wire != KB_WIRE_BYTES)
			return -EINVAL;
		if (is_row && add_row(split, &field))
			return -EINVAL;
		if (field.number != PROFILE_SAMPLE)
			continue;
		if (!KB_ARRAY_ROOM(split->samples, split->max, split->nr + 1))
			return -ENOMEM;
		split->samples[split->nr++] = (struct sample){ kb_proto_inner(&field), 0, 0 };
	}
	return more ?: split->strings.nr ? 0 : -EINVAL;
}

static bool is_called(const struct kb_pprof_split *split, uint64_t string, const char *name)
{
	return string < split->strings.nr && kb_proto_is(split->strings.rows[string].message, name);
}

static void count_samples(struct kb_pprof_split *split)
{
	struct kb_proto_reader reader = kb_proto_reader(split->data, split->size);
	struct kb_proto_field field;
	size_t type = 0;

	for (; kb_proto_read(&reader, &field) > 0; type += field.number == PROFILE_SAMPLE_TYPE) {
		uint64_t name;

		if (field.number != PROFILE_SAMPLE_TYPE)
			continue;
		name = kb_proto_number(kb_proto_inner(&field), TYPE_TYPE);
		for (size_t i = 0; i < split->nr; i++) {
			struct sample *sample = &split->samples[i];

			if (is_called(split, name, "samples"))
				sample->samples = kb_proto_sum(sample->message, SAMPLE_VALUE, type, 1);
			if (is_called(split, name, "waits"))
				sample->waits = kb_proto_sum(sample->message, SAMPLE_VALUE, type, 1);
		}
	}
}

/* Takes the profile out of Parca's text. Returns 0, 1: this is none; or a negative errno. */
static int unwrap(struct kb_pprof_split *split, const char *text, size_t size, void **profile,
		  size_t *profile_size)
{
	const char *from = memmem(text, size, RAW_PROFILE, strlen(RAW_PROFILE)), *to;

	*profile = NULL;
	if (!size || *text != '{' || !from)
		return 1;
	from += strlen(RAW_PROFILE);
	to = memchr(from, '"', (size_t)(text + size - from));
	if (!to)
		return -EINVAL;
	split->before = strndup(text, (size_t)(from - text));
	split->behind = strndup(to, (size_t)(text + size - to));
	*profile = malloc(KB_BASE64_READ_BYTES((size_t)(to - from)) + 1);
	if (!split->before || !split->behind || !*profile)
		return -ENOMEM;
	return kb_base64_read(*profile, profile_size, from, (size_t)(to - from));
}

int kb_pprof_split_open(struct kb_pprof_split **out, const void *data, size_t size)
{
	struct kb_pprof_split *split = calloc(1, sizeof(*split));
	void *profile;
	int ret;

	*out = split;
	if (!split)
		return -ENOMEM;
	ret = unwrap(split, data, size, &profile, &size);
	if (ret >= 0)
		ret = kb_gzip_unpack(ret ? data : profile, size, UNPACKED_MAX, &split->data, &split->size);
	free(profile);
	ret = ret ?: read_profile(split);
	if (!ret)
		count_samples(split);
	return ret;
}

void kb_pprof_split_close(struct kb_pprof_split *split)
{
	if (!split)
		return;
	free(split->strings.rows);
	free(split->mappings.rows);
	free(split->locations.rows);
	free(split->functions.rows);
	free(split->samples);
	free(split->before);
	free(split->behind);
	free(split->data);
	free(split);
}

size_t kb_pprof_split_samples(const struct kb_pprof_split *split)
{
	return split->nr;
}

/* ---- marking ---- */

/* Fields by which a message refers to others: @to is what rows_of() knows, or PROFILE_STRING. */
struct reference {
	uint8_t message, field, to;
};

/* A label, and a line, stand for themselves in the list of messages; pprof has no field 0. */
enum { ALL = 0, TYPE = 32, LABEL, LINE };

static const struct reference references[] = {
	{ ALL, PROFILE_SAMPLE_TYPE, TYPE }, { ALL, PROFILE_PERIOD_TYPE, TYPE },
	{ ALL, PROFILE_COMMENT, PROFILE_STRING }, { ALL, PROFILE_DEFAULT_TYPE, PROFILE_STRING },
	{ TYPE, TYPE_TYPE, PROFILE_STRING }, { TYPE, TYPE_UNIT, PROFILE_STRING },
	{ PROFILE_SAMPLE, SAMPLE_LOCATION, PROFILE_LOCATION }, { PROFILE_SAMPLE, SAMPLE_LABEL, LABEL },
	{ LABEL, LABEL_KEY, PROFILE_STRING }, { LABEL, LABEL_STR, PROFILE_STRING },
	{ PROFILE_LOCATION, LOCATION_MAPPING, PROFILE_MAPPING }, { PROFILE_LOCATION, LOCATION_LINE, LINE },
	{ LINE, LINE_FUNCTION, PROFILE_FUNCTION },
	{ PROFILE_FUNCTION, FUNCTION_NAME, PROFILE_STRING },
	{ PROFILE_FUNCTION, FUNCTION_SYSTEM_NAME, PROFILE_STRING },
	{ PROFILE_FUNCTION, FUNCTION_FILE, PROFILE_STRING },
	{ PROFILE_MAPPING, MAPPING_FILE, PROFILE_STRING }, { PROFILE_MAPPING, MAPPING_BUILD_ID, PROFILE_STRING },
};

static void mark(struct kb_pprof_split *split, unsigned int message, struct kb_proto_reader reader);

static void mark_row(struct kb_pprof_split *split, unsigned int kind, uint64_t number)
{
	struct rows *rows = kind == PROFILE_STRING ? &split->strings : rows_of(split, kind);

	if (number >= rows->nr || rows->rows[number].used)
		return;
	rows->rows[number].used = true;
	if (kind != PROFILE_STRING)
		mark(split, kind, rows->rows[number].message);
}

static void mark_field(struct kb_pprof_split *split, unsigned int to, const struct kb_proto_field *field)
{
	struct kb_proto_reader inner = kb_proto_inner(field);
	uint64_t number;

	if (to >= TYPE)
		mark(split, to, inner);
	else if (field->wire == KB_WIRE_VARINT)
		mark_row(split, to, field->value);
	else
		while (inner.at < inner.end && !kb_proto_read_varint(&inner, &number))
			mark_row(split, to, number);
}

/* Marks all that the message refers to, and what that refers to. */
static void mark(struct kb_pprof_split *split, unsigned int message, struct kb_proto_reader reader)
{
	struct kb_proto_field field;

	while (kb_proto_read(&reader, &field) > 0)
		for (size_t i = 0; i < ARRAY_SIZE(references); i++)
			if (references[i].message == message && references[i].field == field.number)
				mark_field(split, references[i].to, &field);
}

static void mark_part(struct kb_pprof_split *split, const bool *wanted)
{
	struct rows *const all[] = { &split->strings, &split->mappings, &split->locations, &split->functions };

	for (size_t t = 0; t < ARRAY_SIZE(all); t++)
		for (size_t i = 0; i < all[t]->nr; i++)
			all[t]->rows[i].used = false;
	mark(split, ALL, kb_proto_reader(split->data, split->size));
	mark_row(split, PROFILE_MAPPING, split->main);
	for (size_t i = 0; i < split->nr; i++)
		if (wanted[i])
			mark(split, PROFILE_SAMPLE, split->samples[i].message);
}

/* ---- writing ---- */

static void put_time(struct kb_out *out, uint64_t ns)
{
	uint8_t *at = kb_out_reserve(out, KB_PROTO_UINT);

	if (at)
		kb_out_commit(out, kb_proto_put_uint(at, PROFILE_TIME, ns));
}

static void put_empty(struct kb_out *out)
{
	uint8_t *at = kb_out_reserve(out, KB_PROTO_UINT);

	if (at)
		kb_out_commit(out, kb_proto_put_bytes(at, PROFILE_STRING, "", 0));
}

/* Copies what is marked, and the samples in @wanted. */
static void copy(struct kb_pprof_split *split, const bool *wanted, unsigned int ms, struct kb_out *out)
{
	struct kb_proto_reader reader = kb_proto_reader(split->data, split->size);
	const uint8_t *from = reader.at;
	size_t sample = 0, string = 0;
	struct kb_proto_field field;

	for (; kb_proto_read(&reader, &field) > 0; from = reader.at) {
		const struct rows *rows = rows_of(split, field.number);
		bool all = true;

		if (field.number == PROFILE_TIME) {
			put_time(out, field.value + ms * (uint64_t)KB_NS_PER_MS);
			continue;
		}
		if (field.number == PROFILE_STRING && !split->strings.rows[string++].used) {
			put_empty(out);
			continue;
		}
		if (field.number == PROFILE_SAMPLE)
			all = wanted[sample++];
		if (rows)
			all = rows->rows[kb_proto_number(kb_proto_inner(&field), LOCATION_ID)].used;
		if (all)
			kb_out_bytes(out, from, (size_t)(reader.at - from));
	}
}

/* Puts the packed profile back where it stood in Parca's text. */
static int wrap(const struct kb_pprof_split *split, struct kb_pprof_part *part)
{
	size_t before = strlen(split->before), behind = strlen(split->behind);
	size_t middle = KB_BASE64_BYTES(part->size);
	char *text = malloc(before + middle + behind);

	if (text) {
		memcpy(text, split->before, before);
		kb_base64(text + before, part->data, part->size);
		memcpy(text + before + middle, split->behind, behind);
	}
	free(part->data);
	part->data = text;
	part->size = before + middle + behind;
	return text ? 0 : -ENOMEM;
}

int kb_pprof_split_part(struct kb_pprof_split *split, const bool *wanted, unsigned int ms,
			struct kb_pprof_part *part)
{
	struct kb_out *out;
	const void *data;
	size_t size;
	int error = kb_out_memory(&out);

	*part = (struct kb_pprof_part){ 0 };
	if (error)
		return error;
	for (size_t i = 0; i < split->nr; i++) {
		part->samples += wanted[i] ? split->samples[i].samples : 0;
		part->waits += wanted[i] ? split->samples[i].waits : 0;
	}
	mark_part(split, wanted);
	copy(split, wanted, ms, out);
	data = kb_out_data(out, &size);
	error = kb_out_error(out) ?: kb_gzip_pack(data, size, &part->data, &part->size);
	kb_out_destroy(out);
	return error ?: split->before ? wrap(split, part) : 0;
}
