/* SPDX-License-Identifier: MIT */
/* Compresses the pages of Parquet. */
#ifndef KB_LIB_FORMAT_PARQUET_PACK_H
#define KB_LIB_FORMAT_PARQUET_PACK_H

#include "base/io/out_packet.h"

/* The numbers of the format. */
enum kb_parquet_codec {
	KB_PARQUET_PLAIN = 0,
	KB_PARQUET_GZIP	 = 2,
	KB_PARQUET_ZSTD	 = 6,
};

struct kb_parquet_pack;

/* Returns 0, -ENOMEM, or -ENOSYS if the library for @codec is not here. */
int kb_parquet_pack_create(struct kb_parquet_pack **out, enum kb_parquet_codec codec);
void kb_parquet_pack_destroy(struct kb_parquet_pack *pack);

enum kb_parquet_codec kb_parquet_pack_codec(const struct kb_parquet_pack *pack);

/* Append @size bytes to @to, compressed. Errors are those of @to. */
void kb_parquet_pack(struct kb_parquet_pack *pack, struct kb_out *to, const void *data, size_t size);

#endif
