// SPDX-License-Identifier: MIT
/* See tables.h. An entry is encoded when it is first asked for, behind what it refers to. */
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/io/out_packet.h"
#include "export/label.h"
#include "export/otlp/tables.h"
#include "format/protobuf.h"

#define SMALL	256	/* bytes: room for the numbers of a message */

struct entry {
	uint64_t key[2];
};

/* A text is found by its hash; texts with the same one have numbers from 0 on. */
struct string {
	uint64_t key[2];	/* hash, number */
	size_t start, length;	/* in the encoded table; length 0: a new one */
};

struct function {
	uint64_t key[3];	/* indices of the name, the file and the mangled name */
};

enum value_kind { VALUE_TEXT, VALUE_NUMBER };

struct attribute {
	uint64_t key[3];	/* index of the name, kind, number or hash of the text */
};

static void put_empty(struct kb_otlp_tables *tables, enum kb_otlp_table table)
{
	uint8_t *at = kb_out_reserve(tables->out[table], SMALL);

	if (at)
		kb_out_commit(tables->out[table], kb_proto_put_bytes(at, table, "", 0));
}

/* The link of no span has ids of full length, which are zero. */
static void put_no_link(struct kb_otlp_tables *tables)
{
	static const uint8_t zeros[16];
	struct kb_out *out = tables->out[KB_OTLP_LINKS];
	uint8_t *at = kb_out_reserve(out, SMALL), *message;

	if (!at)
		return;
	message = kb_proto_begin(at, KB_OTLP_LINKS, KB_PROTO_EVENT);
	at = kb_proto_put_bytes(message, KB_OTLP_LINK_TRACE, zeros, 16);
	at = kb_proto_put_bytes(at, KB_OTLP_LINK_SPAN, zeros, 8);
	kb_out_commit(out, kb_proto_end(message, at, KB_PROTO_EVENT));
}

void kb_otlp_tables_init(struct kb_otlp_tables *tables, const struct kb_stack_table *stacks)
{
	int table;

	*tables = (struct kb_otlp_tables){ .stacks = stacks };
	kb_table_init(&tables->strings, sizeof(struct string), 2);
	kb_table_init(&tables->attributes, sizeof(struct attribute), 3);
	kb_table_init(&tables->mappings, sizeof(struct entry), 1);
	kb_table_init(&tables->functions, sizeof(struct function), 3);
	kb_table_init(&tables->locations, sizeof(struct entry), 1);
	kb_table_init(&tables->chains, sizeof(struct entry), 1);
	for (table = 1; table < KB_OTLP_TABLES; table++)
		if (kb_out_memory(&tables->out[table]))
			tables->no_memory = true;
	for (table = 1; table < KB_OTLP_TABLES && !tables->no_memory; table++) {
		if (table == KB_OTLP_LINKS)
			put_no_link(tables);
		else
			put_empty(tables, (enum kb_otlp_table)table);
	}
}

void kb_otlp_tables_release(struct kb_otlp_tables *tables)
{
	int table;

	for (table = 1; table < KB_OTLP_TABLES; table++)
		kb_out_destroy(tables->out[table]);
	kb_table_release(&tables->strings);
	kb_table_release(&tables->attributes);
	kb_table_release(&tables->mappings);
	kb_table_release(&tables->functions);
	kb_table_release(&tables->locations);
	kb_table_release(&tables->chains);
}

static uint32_t index_of(const struct kb_table *table, const void *row)
{
	return (uint32_t)(((const char *)row - table->rows) / table->row_size) + 1;
}

/*
 * The row with @key, whose index goes to *@index; *@fresh: it is new and has to be encoded. NULL
 * without memory.
 */
static void *find(struct kb_otlp_tables *tables, struct kb_table *table, const uint64_t *key,
		  uint32_t *index, bool *fresh)
{
	uint32_t before = table->nr;
	void *row = tables->no_memory ? NULL : kb_table_get(table, key);

	tables->no_memory |= !row;
	*index = row ? index_of(table, row) : 0;
	*fresh = row && table->nr != before;
	return row;
}

static uint64_t hash_of(const struct kb_table *table, const char *text, size_t length)
{
	return kb_hash_bytes(table->seed ^ length, text, length);
}

static void put_string(struct kb_otlp_tables *tables, struct string *row, const char *text,
		       size_t length)
{
	struct kb_out *out = tables->out[KB_OTLP_STRINGS];
	uint8_t *at = kb_out_reserve(out, length + SMALL);

	if (!at)
		return;
	at = kb_proto_put_bytes(at, KB_OTLP_STRINGS, text, length);
	row->start = (size_t)(at - length - out->buffer);
	row->length = length;
	kb_out_commit(out, at);
}

static bool is_text(const struct kb_otlp_tables *tables, const struct string *row,
		    const char *text, size_t length)
{
	const uint8_t *table = tables->out[KB_OTLP_STRINGS]->buffer;

	return row->length == length && !memcmp(table + row->start, text, length);
}

uint32_t kb_otlp_text(struct kb_otlp_tables *tables, const char *text, size_t length)
{
	uint64_t key[2] = { 0 };
	char label[KB_STACK_LABEL];
	struct string *row;
	uint32_t index;
	bool fresh;

	length = kb_label(label, sizeof(label), text, length, false);
	if (!length)
		return 0;
	key[0] = hash_of(&tables->strings, label, length);
	for (;; key[1]++) {
		row = find(tables, &tables->strings, key, &index, &fresh);
		if (!row)
			return 0;
		if (fresh)
			put_string(tables, row, label, length);
		if (fresh || is_text(tables, row, label, length))
			return index;
	}
}

static uint32_t text_of(struct kb_otlp_tables *tables, const char *text)
{
	return kb_otlp_text(tables, text, strlen(text));
}

static uint8_t *begin(struct kb_otlp_tables *tables, enum kb_otlp_table table, uint8_t **message)
{
	uint8_t *at = kb_out_reserve(tables->out[table], SMALL);

	*message = at ? kb_proto_begin(at, table, KB_PROTO_EVENT) : NULL;
	return *message;
}

static void end(struct kb_otlp_tables *tables, enum kb_otlp_table table, uint8_t *message,
		uint8_t *at)
{
	kb_out_commit(tables->out[table], kb_proto_end(message, at, KB_PROTO_EVENT));
}

/*
 * An attribute; @number is its value or the hash of its text. The text is in the entry itself:
 * references to the table of texts are too new for most collectors.
 */
static uint32_t attribute(struct kb_otlp_tables *tables, const char *key, enum value_kind kind,
			  uint64_t number, const char *value, size_t length)
{
	struct kb_out *out = tables->out[KB_OTLP_ATTRIBUTES];
	uint64_t words[3] = { text_of(tables, key), kind, number };
	uint8_t *at, *message, *inner;
	uint32_t index;
	bool fresh;

	if (!find(tables, &tables->attributes, words, &index, &fresh) || !fresh)
		return index;
	at = kb_out_reserve(out, length + SMALL);
	if (!at)
		return 0;
	message = kb_proto_begin(at, KB_OTLP_ATTRIBUTES, KB_PROTO_EVENT);
	at = kb_proto_put_uint(message, KB_OTLP_KEY, words[0]);
	inner = kb_proto_begin(at, KB_OTLP_VALUE, KB_PROTO_EVENT);
	if (kind == VALUE_TEXT)
		at = kb_proto_put_bytes(inner, KB_OTLP_VALUE_TEXT, value, length);
	else
		at = kb_proto_put_uint(inner, KB_OTLP_VALUE_INT, number);
	at = kb_proto_end(inner, at, KB_PROTO_EVENT);
	kb_out_commit(out, kb_proto_end(message, at, KB_PROTO_EVENT));
	return index;
}

uint32_t kb_otlp_attribute(struct kb_otlp_tables *tables, const char *key, const char *value,
			   size_t length)
{
	char label[KB_STACK_LABEL];

	length = kb_label(label, sizeof(label), value, length, false);
	return attribute(tables, key, VALUE_TEXT, hash_of(&tables->strings, label, length), label,
			 length);
}

uint32_t kb_otlp_number(struct kb_otlp_tables *tables, const char *key, uint64_t value)
{
	return attribute(tables, key, VALUE_NUMBER, value, NULL, 0);
}

/* The index of an image; 0: no row maps it, so that it has no place. */
static uint32_t mapping(struct kb_otlp_tables *tables, uint32_t i)
{
	const struct kb_stack_image *image = kb_stack_image(tables->stacks, i);
	char hex[KB_BUILD_ID_TEXT];
	size_t length;
	uint32_t index, file, id = 0;
	uint8_t *at, *message;
	bool fresh;

	if (!image->mapped)
		return 0;
	if (!find(tables, &tables->mappings, &(uint64_t){ i }, &index, &fresh) || !fresh)
		return index;
	file = text_of(tables, image->path);
	length = kb_build_id_text(hex, image->build_id);
	if (length)
		id = kb_otlp_attribute(tables, "process.executable.build_id.gnu", hex, length);
	at = begin(tables, KB_OTLP_MAPPINGS, &message);
	if (!at)
		return 0;
	at = kb_proto_put_uint(at, KB_OTLP_MAPPING_START, image->start);
	at = kb_proto_put_uint(at, KB_OTLP_MAPPING_LIMIT, image->end);
	at = kb_proto_put_uint(at, KB_OTLP_MAPPING_OFFSET, image->offset);
	at = kb_proto_put_uint(at, KB_OTLP_MAPPING_FILE, file);
	if (id)
		at = kb_proto_put_one(at, KB_OTLP_MAPPING_ATTRIBUTES, id);
	end(tables, KB_OTLP_MAPPINGS, message, at);
	return index;
}

/* The index of the function of a frame that has a name. */
static uint32_t function(struct kb_otlp_tables *tables, const struct kb_stack_frame *frame)
{
	uint64_t key[3] = {
		text_of(tables, frame->name), text_of(tables, frame->file),
		text_of(tables, frame->raw_name[0] ? frame->raw_name : frame->name),
	};
	uint8_t *at, *message;
	uint32_t index;
	bool fresh;

	if (!find(tables, &tables->functions, key, &index, &fresh) || !fresh)
		return index;
	at = begin(tables, KB_OTLP_FUNCTIONS, &message);
	if (!at)
		return 0;
	at = kb_proto_put_uint(at, KB_OTLP_FUNCTION_NAME, key[0]);
	at = kb_proto_put_uint(at, KB_OTLP_FUNCTION_SYSTEM_NAME, key[2]);
	if (key[1])
		at = kb_proto_put_uint(at, KB_OTLP_FUNCTION_FILE, key[1]);
	end(tables, KB_OTLP_FUNCTIONS, message, at);
	return index;
}

/* The index of a frame. One without a name has no line, so that servers look it up. */
static uint32_t location(struct kb_otlp_tables *tables, uint32_t i)
{
	const struct kb_stack_frame *frame = kb_stack_frame(tables->stacks, i);
	const char *kind = frame->kernel ? "kernel" : "native";
	uint32_t index, image, type, name = 0;
	uint8_t *at, *message, *line;
	bool fresh;

	if (!find(tables, &tables->locations, &(uint64_t){ i }, &index, &fresh) || !fresh)
		return index;
	image = mapping(tables, frame->image);
	type = kb_otlp_attribute(tables, "profile.frame.type", kind, strlen(kind));
	if (frame->name[0])
		name = function(tables, frame);
	at = begin(tables, KB_OTLP_LOCATIONS, &message);
	if (!at)
		return 0;
	if (image)
		at = kb_proto_put_uint(at, KB_OTLP_LOCATION_MAPPING, image);
	at = kb_proto_put_uint(at, KB_OTLP_LOCATION_ADDRESS, frame->address);
	if (name) {
		line = kb_proto_begin(at, KB_OTLP_LOCATION_LINES, KB_PROTO_EVENT);
		at = kb_proto_put_uint(line, KB_OTLP_LINE_FUNCTION, name);
		if (frame->line)
			at = kb_proto_put_uint(at, KB_OTLP_LINE_LINE, frame->line);
		at = kb_proto_end(line, at, KB_PROTO_EVENT);
	}
	at = kb_proto_put_one(at, KB_OTLP_LOCATION_ATTRIBUTES, type);
	end(tables, KB_OTLP_LOCATIONS, message, at);
	return index;
}

uint32_t kb_otlp_chain(struct kb_otlp_tables *tables, uint32_t node)
{
	struct kb_out *out = tables->out[KB_OTLP_STACKS];
	const struct kb_stack_node *at_node = kb_stack_node(tables->stacks, node);
	uint32_t depth = at_node->depth, index;
	uint8_t *at, *message, *list;
	bool fresh;

	if (node == KB_STACK_TABLE_ROOT)
		return 0;
	if (!find(tables, &tables->chains, &(uint64_t){ node }, &index, &fresh) || !fresh)
		return index;
	at = kb_out_reserve(out, (size_t)depth * KB_PROTO_UINT + SMALL);
	if (!at)
		return 0;
	message = kb_proto_begin(at, KB_OTLP_STACKS, KB_PROTO_PACKET);
	list = kb_proto_begin(message, KB_OTLP_STACK_LOCATIONS, KB_PROTO_PACKET);
	at = list;
	for (; at_node->depth; at_node = kb_stack_node(tables->stacks, at_node->parent))
		at = kb_proto_put_varint(at, location(tables, at_node->frame));
	at = kb_proto_end(list, at, KB_PROTO_PACKET);
	kb_out_commit(out, kb_proto_end(message, at, KB_PROTO_PACKET));
	return index;
}

void kb_otlp_nest(struct kb_out *out, uint32_t field, struct kb_out *from)
{
	size_t size;
	const void *data = kb_out_data(from, &size);
	uint8_t *at = kb_out_reserve(out, size + SMALL);

	if (kb_out_error(from))
		kb_out_fail(out, kb_out_error(from));
	else if (at)
		kb_out_commit(out, kb_proto_put_bytes(at, field, data, size));
	from->at = from->buffer;
}

void kb_otlp_tables_write(struct kb_otlp_tables *tables, struct kb_out *out)
{
	size_t size, all = 0;
	uint8_t *at;
	int table;

	for (table = 1; table < KB_OTLP_TABLES && !tables->no_memory; table++) {
		tables->no_memory |= kb_out_error(tables->out[table]) != 0;
		kb_out_data(tables->out[table], &size);
		all += size;
	}
	at = tables->no_memory ? NULL : kb_out_reserve(out, SMALL);
	if (!at)
		return;
	at = kb_proto_put_varint(at, KB_OTLP_REQUEST_DICTIONARY << 3 | 2);
	kb_out_commit(out, kb_proto_put_varint(at, all));
	for (table = 1; table < KB_OTLP_TABLES; table++) {
		const void *data = kb_out_data(tables->out[table], &size);

		kb_out_bytes(out, data, size);
	}
}
