// SPDX-License-Identifier: MIT
/*
 * Fuzz target of the answers of a collector of profiles: what they say lies in their bytes; and of the
 * parts of a request: they have its profiles and its waits, and are requests again.
 */
#include <stdlib.h>
#include <string.h>

#include <zlib.h>

#include "export/otlp/answer.h"
#include "export/otlp/split.h"

static void check(const uint8_t *data, size_t size, const struct kb_otlp_answer *answer)
{
	const uint8_t *text = (const uint8_t *)answer->text;

	if (answer->length && (text < data || answer->length > size ||
			       (size_t)(text - data) > size - answer->length))
		abort();
}

static int open_split(struct kb_otlp_split **split, const void *data, size_t size)
{
	const struct kb_otlp_request request = { .data = data, .size = size, .waits = 1000 };

	return kb_otlp_split_open(split, &request);
}

/* Counts the waits of the profiles from @from to @to as a part. */
static uint64_t split_part(struct kb_otlp_split *split, size_t from, size_t to)
{
	bool *wanted = calloc(kb_otlp_split_profiles(split), sizeof(*wanted));
	struct kb_otlp_request part = { 0 };
	struct kb_otlp_split *again;

	memset(wanted + from, true, to - from);
	if (!kb_otlp_split_part(split, wanted, &part)) {
		if (open_split(&again, part.data, part.size) ||
		    kb_otlp_split_profiles(again) != to - from || part.profiles != to - from)
			abort();
		kb_otlp_split_close(again);
	}
	free((void *)(uintptr_t)part.data);
	free(wanted);
	return part.waits;
}

static void check_parts(const uint8_t *data, size_t size)
{
	z_stream stream = { .next_in = (void *)(uintptr_t)data, .avail_in = (uInt)size };
	uint8_t *packed = malloc(size + 1024 + size / 100);
	struct kb_otlp_split *split = NULL;

	stream.next_out = packed;
	stream.avail_out = (uInt)(size + 1024 + size / 100);
	if (deflateInit2(&stream, 0, Z_DEFLATED, 16 + MAX_WBITS, 1, Z_DEFAULT_STRATEGY) != Z_OK ||
	    deflate(&stream, Z_FINISH) != Z_STREAM_END)
		abort();
	if (!open_split(&split, packed, stream.total_out) && kb_otlp_split_profiles(split) > 1) {
		size_t nr = kb_otlp_split_profiles(split);
		uint64_t waits = split_part(split, 0, nr / 2) + split_part(split, nr / 2, nr);

		if (waits && waits > 1000)
			abort();
	}
	deflateEnd(&stream);
	kb_otlp_split_close(split);
	free(packed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct kb_otlp_answer answer;

	if (!kb_otlp_read_answer(data, size, &answer))
		check(data, size, &answer);
	if (!kb_otlp_read_failure(data, size, &answer))
		check(data, size, &answer);
	check_parts(data, size);
	return 0;
}
