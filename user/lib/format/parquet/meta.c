// SPDX-License-Identifier: MIT
/* Numbers of fields are those of parquet.thrift. */
#include <stdio.h>
#include <string.h>

#include <kbarman/text.h>
#include <kbarman/version.h>

#include "base/array.h"
#include "format/parquet/meta.h"
#include "format/parquet/thrift.h"
#include "format/wire.h"

enum { PAGE_OF_DATA = 0, PAGE_OF_DICTIONARY = 2 };
enum { REQUIRED, OPTIONAL, REPEATED };
enum { CONVERTED_UTF8 = 0, CONVERTED_LIST = 3, CONVERTED_UINT_64 = 14 };
enum { LOGICAL_STRING = 1, LOGICAL_LIST = 3, LOGICAL_INTEGER = 10 };

static const uint8_t physical[] = {
	[KB_PARQUET_BOOL] = 0, [KB_PARQUET_I64] = 2, [KB_PARQUET_U64] = 2,
	[KB_PARQUET_F64] = 5, [KB_PARQUET_TEXT] = 6, [KB_PARQUET_NAME] = 6,
};

/* ---- pages ---- */

void kb_parquet_put_page_header(struct kb_out *out, const struct kb_parquet_page *page)
{
	struct kb_thrift thrift = kb_thrift_begin(out);

	kb_thrift_i32(&thrift, 1, page->dictionary ? PAGE_OF_DICTIONARY : PAGE_OF_DATA);
	kb_thrift_i32(&thrift, 2, (int32_t)page->unpacked);
	kb_thrift_i32(&thrift, 3, (int32_t)page->packed);
	kb_thrift_i32(&thrift, 4, (int32_t)page->crc);
	kb_thrift_struct(&thrift, page->dictionary ? 7 : 5);
	kb_thrift_i32(&thrift, 1, (int32_t)page->values);
	kb_thrift_i32(&thrift, 2, page->encoding);
	if (!page->dictionary) {
		kb_thrift_i32(&thrift, 3, KB_PARQUET_ENCODING_RLE);
		kb_thrift_i32(&thrift, 4, KB_PARQUET_ENCODING_RLE);
	}
	kb_thrift_end(&thrift);
	kb_thrift_end(&thrift);
}

/* ---- the schema ---- */

static void put_empty(struct kb_thrift *thrift, int field)
{
	kb_thrift_struct(thrift, field);
	kb_thrift_end(thrift);
}

/* What a type means: the field of older readers, and that of newer ones. */
static void put_meaning(struct kb_thrift *thrift, enum kb_parquet_type type)
{
	if (type == KB_PARQUET_U64) {
		kb_thrift_i32(thrift, 6, CONVERTED_UINT_64);
		kb_thrift_struct(thrift, 10);
		kb_thrift_struct(thrift, LOGICAL_INTEGER);
		kb_thrift_i8(thrift, 1, 64);
		kb_thrift_bool(thrift, 2, false);
		kb_thrift_end(thrift);
		kb_thrift_end(thrift);
	} else if (type == KB_PARQUET_TEXT || type == KB_PARQUET_NAME) {
		kb_thrift_i32(thrift, 6, CONVERTED_UTF8);
		kb_thrift_struct(thrift, 10);
		put_empty(thrift, LOGICAL_STRING);
		kb_thrift_end(thrift);
	}
}

static void put_leaf(struct kb_thrift *thrift, const char *name, enum kb_parquet_type type,
		     bool optional)
{
	kb_thrift_element_struct(thrift);
	kb_thrift_i32(thrift, 1, physical[type]);
	kb_thrift_i32(thrift, 3, optional ? OPTIONAL : REQUIRED);
	kb_thrift_binary(thrift, 4, kb_text(name));
	put_meaning(thrift, type);
	kb_thrift_end(thrift);
}

/* A list is three nodes: itself, a node that repeats, the element. */
static void put_list(struct kb_thrift *thrift, const struct kb_parquet_column *column)
{
	kb_thrift_element_struct(thrift);
	kb_thrift_i32(thrift, 3, REQUIRED);
	kb_thrift_binary(thrift, 4, kb_text(column->name));
	kb_thrift_i32(thrift, 5, 1);
	kb_thrift_i32(thrift, 6, CONVERTED_LIST);
	kb_thrift_struct(thrift, 10);
	put_empty(thrift, LOGICAL_LIST);
	kb_thrift_end(thrift);
	kb_thrift_end(thrift);

	kb_thrift_element_struct(thrift);
	kb_thrift_i32(thrift, 3, REPEATED);
	kb_thrift_binary(thrift, 4, kb_text("list"));
	kb_thrift_i32(thrift, 5, 1);
	kb_thrift_end(thrift);
	put_leaf(thrift, "element", column->type, false);
}

static void put_schema(struct kb_thrift *thrift, const struct kb_parquet_content *content)
{
	uint32_t nodes = 1 + content->nr_columns;

	for (uint32_t i = 0; i < content->nr_columns; i++)
		nodes += content->columns[i].list ? 2 : 0;
	kb_thrift_list(thrift, 2, KB_THRIFT_STRUCT, nodes);
	kb_thrift_element_struct(thrift);
	kb_thrift_binary(thrift, 4, kb_text("schema"));
	kb_thrift_i32(thrift, 5, (int32_t)content->nr_columns);
	kb_thrift_end(thrift);
	for (uint32_t i = 0; i < content->nr_columns; i++) {
		const struct kb_parquet_column *column = &content->columns[i];

		if (column->list)
			put_list(thrift, column);
		else
			put_leaf(thrift, column->name, column->type, column->optional);
	}
}

/* ---- groups of rows ---- */

static void put_bound(struct kb_thrift *thrift, int field, const struct kb_parquet_bound *bound)
{
	kb_thrift_binary(thrift, field, (struct kb_text) { bound->bytes, bound->length });
}

static void put_statistics(struct kb_thrift *thrift, const struct kb_parquet_chunk *chunk)
{
	kb_thrift_struct(thrift, 12);
	kb_thrift_i64(thrift, 3, (int64_t)chunk->missing);
	if (chunk->bounded) {
		put_bound(thrift, 5, &chunk->most);
		put_bound(thrift, 6, &chunk->least);
		kb_thrift_bool(thrift, 7, true);	/* they are exact */
		kb_thrift_bool(thrift, 8, true);
	}
	kb_thrift_end(thrift);
}

static void put_chunk(struct kb_thrift *thrift, const struct kb_parquet_content *content,
		      const struct kb_parquet_column *column, const struct kb_parquet_chunk *chunk)
{
	static const char *const list[] = { "list", "element" };

	kb_thrift_element_struct(thrift);
	kb_thrift_i64(thrift, 2, 0);	/* the metadata stand only here */
	kb_thrift_struct(thrift, 3);
	kb_thrift_i32(thrift, 1, physical[column->type]);
	kb_thrift_list(thrift, 2, KB_THRIFT_I32, chunk->dictionary_at ? 3 : 2);
	kb_thrift_element_i32(thrift, chunk->encoding);
	kb_thrift_element_i32(thrift, KB_PARQUET_ENCODING_RLE);		/* of levels */
	if (chunk->dictionary_at)
		kb_thrift_element_i32(thrift, KB_PARQUET_ENCODING_PLAIN);
	kb_thrift_list(thrift, 3, KB_THRIFT_BINARY, column->list ? 3 : 1);
	kb_thrift_element_binary(thrift, kb_text(column->name));
	for (size_t i = 0; column->list && i < ARRAY_SIZE(list); i++)
		kb_thrift_element_binary(thrift, kb_text(list[i]));
	kb_thrift_i32(thrift, 4, (int32_t)content->codec);
	kb_thrift_i64(thrift, 5, (int64_t)chunk->values);
	kb_thrift_i64(thrift, 6, (int64_t)chunk->unpacked);
	kb_thrift_i64(thrift, 7, (int64_t)chunk->packed);
	kb_thrift_i64(thrift, 9, (int64_t)chunk->data_at);
	if (chunk->dictionary_at)
		kb_thrift_i64(thrift, 11, (int64_t)chunk->dictionary_at);
	if (!column->list)
		put_statistics(thrift, chunk);
	kb_thrift_end(thrift);
	kb_thrift_end(thrift);
}

static void put_group(struct kb_thrift *thrift, const struct kb_parquet_content *content,
		      uint32_t number)
{
	const struct kb_parquet_rows *group = &content->groups[number];
	const struct kb_parquet_chunk *chunks = content->chunks +
						(size_t)number * content->nr_columns;
	uint64_t packed = 0, unpacked = 0;

	kb_thrift_element_struct(thrift);
	kb_thrift_list(thrift, 1, KB_THRIFT_STRUCT, content->nr_columns);
	for (uint32_t i = 0; i < content->nr_columns; i++) {
		put_chunk(thrift, content, &content->columns[i], &chunks[i]);
		packed += chunks[i].packed;
		unpacked += chunks[i].unpacked;
	}
	kb_thrift_i64(thrift, 2, (int64_t)unpacked);
	kb_thrift_i64(thrift, 3, (int64_t)group->rows);
	if (group->sorted != KB_PARQUET_UNSORTED) {
		kb_thrift_list(thrift, 4, KB_THRIFT_STRUCT, 1);
		kb_thrift_element_struct(thrift);
		kb_thrift_i32(thrift, 1, (int32_t)group->sorted);
		kb_thrift_bool(thrift, 2, false);	/* smallest first */
		kb_thrift_bool(thrift, 3, true);	/* missing ones, of which there are none */
		kb_thrift_end(thrift);
	}
	kb_thrift_i64(thrift, 5, (int64_t)group->at);
	kb_thrift_i64(thrift, 6, (int64_t)packed);
	if (number <= INT16_MAX)
		kb_thrift_i16(thrift, 7, (int16_t)number);
	kb_thrift_end(thrift);
}

/* ---- the end ---- */

void kb_parquet_put_end(struct kb_out *out, const struct kb_parquet_content *content)
{
	uint64_t begin = kb_out_count(out), rows = 0;
	struct kb_thrift thrift = kb_thrift_begin(out);
	char writer[64];
	uint8_t *at;

	for (uint32_t i = 0; i < content->nr_groups; i++)
		rows += content->groups[i].rows;
	kb_thrift_i32(&thrift, 1, 2);		/* of the format */
	put_schema(&thrift, content);
	kb_thrift_i64(&thrift, 3, (int64_t)rows);
	kb_thrift_list(&thrift, 4, KB_THRIFT_STRUCT, content->nr_groups);
	for (uint32_t i = 0; i < content->nr_groups; i++)
		put_group(&thrift, content, i);
	snprintf(writer, sizeof(writer), "kbarman version %s", kb_version());
	kb_thrift_binary(&thrift, 6, kb_text(writer));
	/* bounds are in the order of each type */
	kb_thrift_list(&thrift, 7, KB_THRIFT_STRUCT, content->nr_columns);
	for (uint32_t i = 0; i < content->nr_columns; i++) {
		kb_thrift_element_struct(&thrift);
		put_empty(&thrift, 1);
		kb_thrift_end(&thrift);
	}
	kb_thrift_end(&thrift);

	at = kb_out_reserve(out, 8);
	if (!at)
		return;
	kb_store32(at, (uint32_t)(kb_out_count(out) - begin), KB_SWAP_LE);
	memcpy(at + 4, KB_PARQUET_MAGIC, 4);
	kb_out_commit(out, at + 8);
}
