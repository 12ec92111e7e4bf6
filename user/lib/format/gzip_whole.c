// SPDX-License-Identifier: MIT
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <zlib.h>

#include "format/gzip.h"
#include "format/gzip_whole.h"

static int copy_of(const struct kb_out *from, void **out, size_t *size)
{
	const void *data = kb_out_data(from, size);

	*out = malloc(*size);
	if (*out)
		memcpy(*out, data, *size);
	return *out ? 0 : -ENOMEM;
}

int kb_gzip_pack(const void *data, size_t size, void **out, size_t *out_size)
{
	struct kb_out *packed, *in;
	struct kb_gzip *gzip;
	int error = kb_out_memory(&packed);

	*out = NULL;
	if (error)
		return error;
	error = kb_gzip_create(&gzip, packed, &in);
	if (!error) {
		kb_out_bytes(in, data, size);
		error = kb_gzip_finish(gzip) ?: kb_out_error(packed);
		kb_gzip_destroy(gzip);
	}
	error = error ?: copy_of(packed, out, out_size);
	kb_out_destroy(packed);
	return error;
}

/* Gives *@out more room. False: no memory, or it has @most bytes. */
static bool more_room(uint8_t **out, size_t *room, size_t first, size_t most)
{
	size_t wanted = *room ? 2 * *room : first;
	uint8_t *more;

	if (wanted > most)
		wanted = most;
	more = wanted > *room ? realloc(*out, wanted) : NULL;
	if (!more)
		return false;
	*out = more;
	*room = wanted;
	return true;
}

int kb_gzip_unpack(const void *data, size_t size, size_t most, uint8_t **out, size_t *out_size)
{
	z_stream stream = { .next_in = (void *)(uintptr_t)data, .avail_in = (uInt)size };
	size_t room = 0;
	int ret = Z_OK;

	*out = NULL;
	*out_size = 0;
	if (size > UINT_MAX / 8 || most > UINT_MAX || inflateInit2(&stream, 16 + MAX_WBITS) != Z_OK)
		return -ENOMEM;
	while (ret == Z_OK) {
		if (*out_size == room && !more_room(out, &room, 4 * size + 4096, most)) {
			ret = Z_MEM_ERROR;
			break;
		}
		stream.next_out = *out + *out_size;
		stream.avail_out = (uInt)(room - *out_size);
		ret = inflate(&stream, Z_NO_FLUSH);
		*out_size = room - stream.avail_out;
	}
	inflateEnd(&stream);
	if (ret == Z_STREAM_END)
		return 0;
	free(*out);
	*out = NULL;
	return ret == Z_MEM_ERROR ? -ENOMEM : -EINVAL;
}
