// SPDX-License-Identifier: MIT
/* Connects two outputs with zlib's deflate, with the header and trailer of RFC 1952. */
#include <errno.h>
#include <stdlib.h>
#include <zlib.h>

#include "base/out_packet.h"
#include "format/gzip.h"

#define CHUNK	(64U << 10)
#define GZIP	(MAX_WBITS + 16)	/* zlib's parameter for the gzip format */

struct kb_gzip {
	z_stream stream;
	struct kb_out *in, *out;
};

/* Compress until all of @data is used, or with Z_FINISH until everything is written. */
static int pack(struct kb_gzip *gzip, const void *data, size_t size, int flush)
{
	z_stream *stream = &gzip->stream;
	uint8_t *at;

	stream->next_in = (void *)data;
	stream->avail_in = (uInt)size;	/* fits: kb_out passes one buffer at a time */
	do {
		at = kb_out_reserve(gzip->out, CHUNK);
		if (!at)
			return kb_out_error(gzip->out);
		stream->next_out = at;
		stream->avail_out = CHUNK;
		deflate(stream, flush);
		kb_out_commit(gzip->out, stream->next_out);
	} while (!stream->avail_out);
	return 0;
}

static int write_packed(void *context, const void *data, size_t size)
{
	return pack(context, data, size, Z_NO_FLUSH);
}

int kb_gzip_create(struct kb_gzip **out, struct kb_out *to, struct kb_out **in)
{
	struct kb_gzip *gzip = calloc(1, sizeof(*gzip));

	if (!gzip)
		return -ENOMEM;
	gzip->out = to;
	if (deflateInit2(&gzip->stream, Z_BEST_SPEED, Z_DEFLATED, GZIP, 8, Z_DEFAULT_STRATEGY))
		goto err_gzip;
	if (kb_out_function(&gzip->in, write_packed, gzip))
		goto err_stream;
	*in = gzip->in;
	*out = gzip;
	return 0;

err_stream:
	deflateEnd(&gzip->stream);
err_gzip:
	free(gzip);
	return -ENOMEM;
}

void kb_gzip_destroy(struct kb_gzip *gzip)
{
	if (!gzip)
		return;
	kb_out_destroy(gzip->in);
	deflateEnd(&gzip->stream);
	free(gzip);
}

int kb_gzip_finish(struct kb_gzip *gzip)
{
	int error = kb_out_flush(gzip->in);

	return error ? error : pack(gzip, NULL, 0, Z_FINISH);
}
