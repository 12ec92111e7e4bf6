// SPDX-License-Identifier: MIT
/* See pack.h. A page is compressed at once. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <zlib.h>

#include "format/parquet/pack.h"
#include "format/zstd.h"

#define GZIP_WINDOW	(MAX_WBITS + 16)	/* zlib's parameter for the format of gzip */
#define ZSTD_LEVEL	3			/* its default */

struct kb_parquet_pack {
	enum kb_parquet_codec codec;
	z_stream stream;
	void *context;		/* of libzstd */
};

int kb_parquet_pack_create(struct kb_parquet_pack **out, enum kb_parquet_codec codec)
{
	struct kb_parquet_pack *pack;

	if (codec == KB_PARQUET_ZSTD && !kb_zstd())
		return -ENOSYS;
	pack = calloc(1, sizeof(*pack));
	if (!pack)
		return -ENOMEM;
	pack->codec = codec;
	if (codec == KB_PARQUET_ZSTD)
		pack->context = kb_zstd()->createCCtx();
	if ((codec == KB_PARQUET_ZSTD && !pack->context) ||
	    (codec == KB_PARQUET_GZIP &&
	     deflateInit2(&pack->stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, GZIP_WINDOW, 8,
			  Z_DEFAULT_STRATEGY))) {
		free(pack);
		return -ENOMEM;
	}
	*out = pack;
	return 0;
}

void kb_parquet_pack_destroy(struct kb_parquet_pack *pack)
{
	if (!pack)
		return;
	if (pack->codec == KB_PARQUET_ZSTD)
		kb_zstd()->freeCCtx(pack->context);
	if (pack->codec == KB_PARQUET_GZIP)
		deflateEnd(&pack->stream);
	free(pack);
}

enum kb_parquet_codec kb_parquet_pack_codec(const struct kb_parquet_pack *pack)
{
	return pack->codec;
}

static void pack_zstd(struct kb_parquet_pack *pack, struct kb_out *to, const void *data, size_t size)
{
	const struct kb_zstd *zstd = kb_zstd();
	size_t room = zstd->compressBound(size);
	uint8_t *at = kb_out_reserve(to, room);

	if (!at)
		return;
	size = zstd->compressCCtx(pack->context, at, room, data, size, ZSTD_LEVEL);
	if (zstd->isError(size))
		kb_out_fail(to, -ENOMEM);	/* all else is impossible */
	else
		kb_out_commit(to, at + size);
}

static void pack_gzip(struct kb_parquet_pack *pack, struct kb_out *to, const void *data, size_t size)
{
	z_stream *stream = &pack->stream;
	uLong room = deflateBound(stream, size);
	uint8_t *at = kb_out_reserve(to, room);

	if (!at)
		return;
	stream->next_in = (void *)data;
	stream->avail_in = (uInt)size;
	stream->next_out = at;
	stream->avail_out = (uInt)room;
	if (deflate(stream, Z_FINISH) != Z_STREAM_END || deflateReset(stream))
		kb_out_fail(to, -ENOMEM);
	else
		kb_out_commit(to, stream->next_out);
}

void kb_parquet_pack(struct kb_parquet_pack *pack, struct kb_out *to, const void *data, size_t size)
{
	if (size > INT_MAX / 2)
		kb_out_fail(to, -EFBIG);	/* pages have sizes of 31 bits */
	else if (pack->codec == KB_PARQUET_ZSTD)
		pack_zstd(pack, to, data, size);
	else if (pack->codec == KB_PARQUET_GZIP)
		pack_gzip(pack, to, data, size);
	else
		kb_out_bytes(to, data, size);
}
