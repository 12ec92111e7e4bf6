/* SPDX-License-Identifier: MIT */
/* What a Parquet file says of itself: headers of pages, and the end of the file. */
#ifndef KB_LIB_FORMAT_PARQUET_META_H
#define KB_LIB_FORMAT_PARQUET_META_H

#include "format/parquet/column.h"
#include "format/parquet/pack.h"

#define KB_PARQUET_MAGIC	"PAR1"

/* The numbers of the format. */
enum kb_parquet_encoding {
	KB_PARQUET_ENCODING_PLAIN = 0,
	KB_PARQUET_ENCODING_RLE	  = 3,
	KB_PARQUET_ENCODING_DELTA = 5,		/* DELTA_BINARY_PACKED */
	KB_PARQUET_ENCODING_DICTIONARY = 8,	/* RLE_DICTIONARY */
};

struct kb_parquet_page {
	uint32_t unpacked, packed, crc;		/* bytes, bytes, of the latter */
	uint32_t values;			/* missing ones and empty lists included */
	enum kb_parquet_encoding encoding;
	bool dictionary;			/* it is a dictionary */
};

void kb_parquet_put_page_header(struct kb_out *out, const struct kb_parquet_page *page);

#define KB_PARQUET_BOUND	64	/* longest text that is a bound, bytes */

/* A bound as the format has it. */
struct kb_parquet_bound {
	uint8_t length;
	char bytes[KB_PARQUET_BOUND];
};

/* A column in a group of rows. */
struct kb_parquet_chunk {
	uint64_t dictionary_at;		/* in the file; 0: there is none */
	uint64_t data_at;
	uint64_t values;		/* as in struct kb_parquet_page */
	uint64_t unpacked, packed;	/* bytes with headers */
	enum kb_parquet_encoding encoding;
	uint64_t missing;
	bool bounded;			/* it has the next two */
	struct kb_parquet_bound least, most;
};

struct kb_parquet_rows {
	uint64_t rows, at;		/* at: in the file */
	uint32_t sorted;
};

/* What is in a file: the chunks of the first group, then those of the second one. */
struct kb_parquet_content {
	const struct kb_parquet_column *columns;
	uint32_t nr_columns;
	enum kb_parquet_codec codec;
	const struct kb_parquet_rows *groups;
	uint32_t nr_groups;
	const struct kb_parquet_chunk *chunks;
};

/* The end of the file, from the metadata on. */
void kb_parquet_put_end(struct kb_out *out, const struct kb_parquet_content *content);

#endif
