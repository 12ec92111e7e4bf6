// SPDX-License-Identifier: MIT
/* What goes through kb_gzip comes out of zlib's inflate, the same bytes on any number of CPUs. */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <zlib.h>

#include "format/gzip.h"

#include "../lib/tap.h"

#define BLOCK	(256U << 10)	/* of gzip.c */

/* @size bytes of @data, written in pieces of @piece. */
static struct kb_out *pack(const uint8_t *data, size_t size, size_t piece)
{
	struct kb_gzip *gzip;
	struct kb_out *packed, *in;

	if (kb_out_memory(&packed) || kb_gzip_create(&gzip, packed, &in))
		abort();
	for (size_t at = 0; at < size; at += piece)
		kb_out_bytes(in, data + at, size - at < piece ? size - at : piece);
	if (kb_gzip_finish(gzip))
		abort();
	kb_gzip_destroy(gzip);
	return packed;
}

static bool is_packed(const struct kb_out *packed, const uint8_t *data, size_t size)
{
	z_stream stream = { 0 };
	uint8_t *got = malloc(size + 1);
	size_t length;
	bool good;

	stream.next_in = (void *)kb_out_data(packed, &length);
	stream.avail_in = (uInt)length;
	stream.next_out = got;
	stream.avail_out = (uInt)size + 1;
	good = got && !inflateInit2(&stream, MAX_WBITS + 16) &&
	       inflate(&stream, Z_FINISH) == Z_STREAM_END && !stream.avail_in &&
	       stream.total_out == size && !memcmp(got, data, size);
	inflateEnd(&stream);
	free(got);
	return good;
}

static bool are_equal(const struct kb_out *a, const struct kb_out *b)
{
	size_t sizes[2];
	const void *data[] = { kb_out_data(a, &sizes[0]), kb_out_data(b, &sizes[1]) };

	return sizes[0] == sizes[1] && !memcmp(data[0], data[1], sizes[0]);
}

static void use_cpus(unsigned int nr)
{
	cpu_set_t all, some;

	CPU_ZERO(&some);
	sched_getaffinity(0, sizeof(all), &all);
	for (int cpu = 0; cpu < CPU_SETSIZE && nr; cpu++)
		if (CPU_ISSET(cpu, &all)) {
			CPU_SET(cpu, &some);
			nr--;
		}
	sched_setaffinity(0, sizeof(some), &some);
}

static int refuse(void *context, const void *data, size_t size)
{
	(void)context;
	(void)data;
	(void)size;
	return -ENOSPC;
}

static void try_errors(const uint8_t *data, size_t size)
{
	struct kb_gzip *gzip;
	struct kb_out *full, *in;

	if (kb_out_function(&full, refuse, NULL) || kb_gzip_create(&gzip, full, &in))
		abort();
	kb_out_bytes(in, data, size);
	kb_gzip_finish(gzip);
	tap_is(kb_out_flush(full), -ENOSPC, "a_full_disk_is_told");
	kb_gzip_destroy(gzip);
	kb_out_destroy(full);

	if (kb_out_memory(&full) || kb_gzip_create(&gzip, full, &in))
		abort();
	kb_out_bytes(in, data, size);
	kb_gzip_destroy(gzip);
	kb_out_destroy(full);
	tap_ok(true, "what_is_not_finished_can_be_left");
}

int main(void)
{
	static const size_t sizes[] = { 0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK, 40 * BLOCK + 77 };
	static const size_t pieces[] = { 1000, 64U << 10, 3U << 20 };
	const size_t most = sizes[sizeof(sizes) / sizeof(sizes[0]) - 1];
	unsigned int broken = 0, differing = 0;
	uint8_t *data = malloc(most);
	struct kb_out *packed[2];
	uint32_t random = 1;
	size_t length;
	cpu_set_t all;

	if (!data)
		abort();
	for (size_t i = 0; i < most; i++) {
		random = random * 1103515245 + 12345;
		data[i] = (uint8_t)(i / 100 % 2 ? i / 7 : random >> 16);
	}
	sched_getaffinity(0, sizeof(all), &all);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		for (size_t k = 0; k < sizeof(pieces) / sizeof(pieces[0]); k++) {
			packed[0] = pack(data, sizes[i], pieces[k]);
			use_cpus(1);
			packed[1] = pack(data, sizes[i], pieces[2]);
			sched_setaffinity(0, sizeof(all), &all);
			broken += !is_packed(packed[0], data, sizes[i]);
			differing += !are_equal(packed[0], packed[1]);
			kb_out_data(packed[0], &length);
			broken += length > sizes[i] * 3 / 4 + 1000;
			kb_out_destroy(packed[0]);
			kb_out_destroy(packed[1]);
		}
	tap_is(broken, 0, "what_was_packed_comes_back");
	tap_is(differing, 0, "one_cpu_writes_what_several_write");
	try_errors(data, most);
	free(data);
	return tap_done();
}
