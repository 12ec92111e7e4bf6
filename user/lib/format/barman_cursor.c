// SPDX-License-Identifier: MIT
/*
 * The record buffer as a sequence of blocks, for all types of stores. This finds the part of
 * the buffer that has data, orders the two parts of a wrapped ring, and moves a window of whole
 * blocks over them. It is the slow path of the reader: it runs once a window, and for blocks
 * without a record.
 */
#include <errno.h>
#include <inttypes.h>

#include "base/progress_tell.h"
#include "format/barman_inside.h"

/* Limited, so that sums with offsets in the file do not overflow. */
static uint64_t buffer_length(const struct kb_barman *b)
{
	uint64_t length = b->header.buffer_length;

	return length < BARMAN_OPEN_END ? length : BARMAN_OPEN_END;
}

/* Add [start, end) of the record buffer, unless it is empty. */
static void add_segment(struct kb_barman *b, uint64_t start, uint64_t end)
{
	const struct kb_header *h = &b->header;

	if (start >= end)
		return;
	b->segments[b->nr_segments++] = (struct barman_segment){
		.start = h->buffer_start + start,
		.end = h->buffer_start + end,
	};
}

static void linear_segments(struct kb_barman *b)
{
	const struct kb_header *h = &b->header;
	uint64_t end = h->write_offset;

	b->open_ended = end == BARMAN_OPEN_END && h->buffer_length == end && !h->total_written;
	if (end > buffer_length(b)) {
		barman_finding(b, KB_NO_OFFSET, "the write offset %" PRIu64
			       " is behind the end of the buffer of %" PRIu64 " bytes",
			       end, h->buffer_length);
		end = buffer_length(b);
	}
	if (h->read_offset > end)
		barman_finding(b, KB_NO_OFFSET, "the read offset %" PRIu64
			       " is behind the write offset %" PRIu64, h->read_offset, end);
	add_segment(b, h->read_offset, end);
}

/*
 * Length of the data in a ring. Arm's agent and kbarman write offsets that only grow. Other
 * writers store offsets modulo the ring's size; then only total_written distinguishes a full
 * ring from an empty one.
 */
static uint64_t ring_data_length(struct kb_barman *b)
{
	const struct kb_header *h = &b->header;
	uint64_t n = buffer_length(b), w = h->write_offset, r = h->read_offset;
	uint64_t reduced_w, reduced_r;

	if (w > r && w - r <= n)
		return w - r;
	if (w == r)
		return w < n && h->total_written > w && h->total_written >= n ? n : 0;
	if (w > r || r >= n)
		barman_finding(b, KB_NO_OFFSET, "read offset %" PRIu64 " and write offset %" PRIu64
						" contradict a ring of %" PRIu64 " bytes", r, w, n);
	else if (h->total_written < n)
		barman_finding(b, KB_NO_OFFSET, "the offsets say that the ring has wrapped, but "
			       "%" PRIu64 " of its %" PRIu64 " bytes were written",
			       h->total_written, n);
	if (w > r)
		return n;
	reduced_w = w % n;
	reduced_r = r % n;
	return reduced_w > reduced_r ? reduced_w - reduced_r : n - reduced_r + reduced_w;
}

static void ring_segments(struct kb_barman *b)
{
	const struct kb_header *h = &b->header;
	uint64_t length, start, ahead;

	if (!h->buffer_length) {
		if (h->write_offset != h->read_offset)
			barman_finding(b, KB_NO_OFFSET, "a ring of 0 bytes can't hold data");
		return;
	}
	length = ring_data_length(b);
	start = h->read_offset % buffer_length(b);
	ahead = buffer_length(b) - start;
	if (length <= ahead) {
		add_segment(b, start, start + length);
	} else {
		add_segment(b, start, buffer_length(b));
		add_segment(b, 0, length - ahead);
	}
}

static void lay_out(struct kb_barman *b)
{
	const struct kb_header *h = &b->header;

	b->nr_segments = 0;
	if (h->buffer_length > BARMAN_OPEN_END)
		barman_finding(b, KB_NO_OFFSET, "a buffer of %" PRIu64 " bytes is not possible",
			       h->buffer_length);
	if (h->data_store_type == KB_STORE_LINEAR)
		linear_segments(b);
	else
		ring_segments(b);
}

void barman_cursor_init(struct kb_barman *b)
{
	const struct kb_header *h = &b->header;

	b->segment = 0;
	b->ended = false;
	b->told = false;
	b->failure.code = 0;
	b->window_offset = 0;
	b->nr_findings = b->nr_header_findings;
	if (!b->salvaged)
		lay_out(b);
	b->at = b->end = b->window = NULL;
	b->window_offset = b->nr_segments ? b->segments[0].start : h->buffer_start;
}

uint64_t barman_position(const struct kb_barman *b, uint64_t offset)
{
	uint64_t before = 0;

	for (unsigned int i = 0; i < b->nr_segments; i++) {
		if (offset >= b->segments[i].start && offset < b->segments[i].end)
			return before + offset - b->segments[i].start;
		before += b->segments[i].end - b->segments[i].start;
	}
	return UINT64_MAX;
}

void barman_go(struct kb_barman *b, uint64_t position)
{
	for (b->segment = 0; b->segment < b->nr_segments; b->segment++) {
		const struct barman_segment *segment = &b->segments[b->segment];

		if (position < segment->end - segment->start) {
			b->window_offset = segment->start + position;
			break;
		}
		position -= segment->end - segment->start;
	}
	b->at = b->end = b->window = NULL;
}

static void next_segment(struct kb_barman *b)
{
	b->segment++;
	b->at = b->end = b->window = NULL;
	if (b->segment < b->nr_segments)
		b->window_offset = b->segments[b->segment].start;
}

/* The block structure is broken: report it and go on with the next segment. */
static void broken(struct kb_barman *b, uint64_t offset, const char *format, uint64_t number)
	__attribute__((format(printf, 3, 0)));

static void broken(struct kb_barman *b, uint64_t offset, const char *format, uint64_t number)
{
	barman_finding(b, offset, format, number);
	next_segment(b);
}

/* Only @got bytes of the block at @block are there, or the file ended before the block. */
static void cut_short(struct kb_barman *b, uint64_t block, size_t got)
{
	uint64_t end = block + got;

	if (end > b->source.size)
		end = b->source.size;
	if (b->open_ended && end == block)
		next_segment(b);
	else if (b->open_ended)
		broken(b, end, "the file ends here, inside a block, at byte %" PRIu64
		       " of the record buffer", end - b->header.buffer_start);
	else
		broken(b, end, "the file ends here, %" PRIu64 " bytes of records are missing",
		       b->segments[b->segment].end - end);
}

static void tell_progress(const struct kb_barman *b, uint64_t at)
{
	uint64_t done = 0, total = 0;

	for (unsigned int i = 0; i < b->nr_segments; i++) {
		total += b->segments[i].end - b->segments[i].start;
		if (i < b->segment)
			done = total;
	}
	/* The end of data from a pipe is not known in advance. */
	if (b->open_ended)
		total = 0;
	kb_progress_tell("reading", done + at - b->segments[b->segment].start, total);
}

int barman_cursor_advance(struct kb_barman *b, struct kb_error *err)
{
	unsigned int word = b->header.word_size;
	bool swap = b->header.big_endian != KB_HOST_BIG_ENDIAN;
	uint64_t padding_bit = UINT64_C(1) << (word * 8 - 1);
	uint64_t at = b->window_offset + (b->at - b->window);

	while (b->segment < b->nr_segments) {
		uint64_t left, length, whole;
		const uint8_t *bytes;
		struct kb_error why;
		size_t got;

		if (!b->window)
			at = b->window_offset;
		left = b->segments[b->segment].end - at;
		if (left < word) {
			/* If the size of a ring is odd, no block uses its last bytes. */
			bool rest = b->segment + 1 < b->nr_segments ||
				    b->header.data_store_type == KB_STORE_CIRCULAR;

			if (left && !rest)
				broken(b, at, "%" PRIu64 " stray bytes behind the last block",
				       left);
			else
				next_segment(b);
			continue;
		}
		if (b->probe_end && at + word > b->probe_end)
			return 0;
		bytes = kb_source_at(&b->source, at, word, &got, &why);
		if (!bytes && why.code) {
			*err = why;
			return why.code;
		}
		if (!bytes || got < word) {
			cut_short(b, at, got);
			continue;
		}
		length = kb_load_word(bytes, word, swap);
		whole = word + (length & ~padding_bit);
		if (whole < word || whole > left) {
			broken(b, at, "a block of %" PRIu64 " bytes does not fit into the record "
			       "buffer", length & ~padding_bit);
			continue;
		}
		if (length & padding_bit || whole > BARMAN_BLOCK_MAX) {
			if (!(length & padding_bit))
				barman_finding(b, at, "a record of %" PRIu64 " bytes is too long",
					       length);
			at += whole;
			b->at = b->end = b->window = bytes;	/* not NULL: `at` is valid */
			b->window_offset = at;
			continue;
		}
		if (b->probe_end && at + whole > b->probe_end)
			return 0;
		bytes = kb_source_at(&b->source, at, whole, &got, &why);
		if (!bytes && why.code) {
			*err = why;
			return why.code;
		}
		if (got < whole) {
			cut_short(b, at, got);
			continue;
		}
		if (b->stop && *b->stop)
			return kb_error_set(err, -EINTR, KB_NO_OFFSET, "interrupted");
		tell_progress(b, at);
		b->at = b->window = bytes;
		b->end = bytes + (got < left ? got : left);
		b->window_offset = at;
		return 1;
	}
	b->at = b->end = b->window = NULL;
	return 0;
}
