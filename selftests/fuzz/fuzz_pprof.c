// SPDX-License-Identifier: MIT
/*
 * Fuzz target of the parts of a profile of pprof, packed alone and in the text of Parca: together they
 * have its samples and its waits, and each is a profile again.
 */
#include <stdlib.h>
#include <string.h>

#include <zlib.h>

#include "export/viewers/pprof_split.h"
#include "format/base64.h"

/* Both are to be freed. */
struct packed {
	uint8_t *alone;
	char *in_text;
	size_t size, text_size;
};

static void add_part(struct kb_pprof_split *split, size_t from, size_t to, struct kb_pprof_part *sums)
{
	bool *wanted = calloc(kb_pprof_split_samples(split) + 1, sizeof(*wanted));
	struct kb_pprof_split *again = NULL;
	struct kb_pprof_part part;

	memset(wanted + from, true, to - from);
	if (kb_pprof_split_part(split, wanted, (unsigned int)from, &part) ||
	    kb_pprof_split_open(&again, part.data, part.size) ||
	    kb_pprof_split_samples(again) != to - from)
		abort();
	sums->samples += part.samples;
	sums->waits += part.waits;
	kb_pprof_split_close(again);
	free(part.data);
	free(wanted);
}

static void check(const void *data, size_t size)
{
	struct kb_pprof_part whole = { 0 }, sums = { 0 };
	struct kb_pprof_split *split = NULL;

	if (!kb_pprof_split_open(&split, data, size)) {
		size_t nr = kb_pprof_split_samples(split);

		add_part(split, 0, nr, &whole);
		add_part(split, 0, nr / 2, &sums);
		add_part(split, nr / 2, nr, &sums);
		if (sums.samples != whole.samples || sums.waits != whole.waits)
			abort();
	}
	kb_pprof_split_close(split);
}

/* Stored, so that the fuzzer sees what it changes. */
static void pack(const uint8_t *data, size_t size, struct packed *packed)
{
	static const char before[] = "{\"series\":[{\"samples\":[{\"rawProfile\":\"", behind[] = "\"}]}]}";
	size_t room = size + 1024 + size / 100;
	z_stream stream = { .next_in = (void *)(uintptr_t)data, .avail_in = (uInt)size };

	packed->alone = malloc(room);
	stream.next_out = packed->alone;
	stream.avail_out = (uInt)room;
	if (deflateInit2(&stream, 0, Z_DEFLATED, 16 + MAX_WBITS, 1, Z_DEFAULT_STRATEGY) != Z_OK ||
	    deflate(&stream, Z_FINISH) != Z_STREAM_END)
		abort();
	packed->size = stream.total_out;
	deflateEnd(&stream);
	packed->text_size = strlen(before) + KB_BASE64_BYTES(packed->size) + strlen(behind);
	packed->in_text = malloc(packed->text_size);
	memcpy(packed->in_text, before, strlen(before));
	kb_base64(packed->in_text + strlen(before), packed->alone, packed->size);
	memcpy(packed->in_text + packed->text_size - strlen(behind), behind, strlen(behind));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct packed packed;

	pack(data, size, &packed);
	check(packed.alone, packed.size);
	check(packed.in_text, packed.text_size);
	free(packed.alone);
	free(packed.in_text);
	return 0;
}
