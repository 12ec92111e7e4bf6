// SPDX-License-Identifier: MIT
/* What a thread writes for an output is what its caller would have written; errors arrive. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/io/out_packet.h"

#include "../lib/tap.h"

#define ROOM	(1U << 21)	/* of a sink */

struct sink {
	uint8_t *bytes;
	size_t nr, calls;
	size_t fails_at;	/* call that fails, from 1; 0: none */
	useconds_t takes;	/* microseconds of a call */
};

static int take(void *context, const void *data, size_t size)
{
	struct sink *sink = context;

	usleep(sink->takes);
	if (++sink->calls == sink->fails_at)
		return -ENOSPC;
	if (sink->nr + size > ROOM)
		return -EFBIG;
	memcpy(sink->bytes + sink->nr, data, size);
	sink->nr += size;
	return 0;
}

static struct kb_out *output(struct sink *sink, bool behind)
{
	struct kb_out *out;

	sink->bytes = malloc(ROOM);
	if (!sink->bytes || kb_out_function(&out, take, sink) || (behind && kb_out_behind(out)))
		abort();
	return out;
}

/* Packets of many sizes, one larger than all buffers; numbers everywhere. */
static void put_packets(struct kb_out *out)
{
	uint32_t number = 0;

	for (uint32_t size = 1; size < 1000; size += 3) {
		uint32_t words = size == 601 ? 100000 : size;
		uint8_t *at = kb_out_reserve(out, words * sizeof(number));

		if (!at)
			return;
		for (uint32_t i = 0; i < words; i++, number++)
			memcpy(at + i * sizeof(number), &number, sizeof(number));
		kb_out_commit(out, at + words * sizeof(number));
	}
}

static void a_slow_thread_writes_what_the_caller_would(void)
{
	struct sink own = { 0 }, behind = { .takes = 2000 };
	struct kb_out *outs[] = { output(&own, false), output(&behind, true) };

	for (int i = 0; i < 2; i++) {
		put_packets(outs[i]);
		tap_is(kb_out_flush(outs[i]), 0, "a_flush_succeeds");
	}
	tap_is(kb_out_count(outs[1]), kb_out_count(outs[0]), "bytes_are_counted_the_same");
	tap_is(behind.nr, kb_out_count(outs[1]), "all_is_written_after_a_flush");
	tap_ok(own.nr == behind.nr && !memcmp(own.bytes, behind.bytes, own.nr),
	       "a_thread_writes_the_same_in_order");
	for (int i = 0; i < 2; i++)
		kb_out_destroy(outs[i]);
	free(own.bytes);
	free(behind.bytes);
}

/* The error of the call @fails_at is told, and nothing is written behind the hole. */
static void an_error_is_told(size_t fails_at, const char *told, const char *last)
{
	struct sink sink = { .fails_at = fails_at, .takes = 1000 };
	struct kb_out *out = output(&sink, true);

	put_packets(out);
	tap_is(kb_out_flush(out), -ENOSPC, told);
	kb_out_bytes(out, "more", 4);
	tap_is(kb_out_flush(out), -ENOSPC, "an_error_stays");
	tap_is(sink.calls, fails_at, last);
	kb_out_destroy(out);
	free(sink.bytes);
}

static void what_was_not_flushed_ends_with_the_output(void)
{
	struct sink sink = { .takes = 1000 };
	struct kb_out *out = output(&sink, true);

	size_t calls;

	put_packets(out);
	kb_out_destroy(out);
	calls = sink.calls;
	usleep(10 * sink.takes);
	tap_ok(calls && sink.calls == calls, "nothing_is_written_after_the_end_of_an_output");
	free(sink.bytes);
}

int main(void)
{
	struct sink sink = { 0 };
	struct kb_out *out = output(&sink, true);
	size_t calls;

	put_packets(out);
	kb_out_flush(out);
	calls = sink.calls;
	kb_out_destroy(out);
	free(sink.bytes);

	a_slow_thread_writes_what_the_caller_would();
	an_error_is_told(1, "an_error_of_the_first_buffer_is_told", "nothing_follows_the_first_error");
	an_error_is_told(calls, "an_error_of_the_last_buffer_is_told", "nothing_follows_the_last_error");
	what_was_not_flushed_ends_with_the_output();
	return tap_done();
}
