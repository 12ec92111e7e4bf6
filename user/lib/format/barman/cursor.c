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
#include "format/barman/inside.h"

/* Limited, so that sums with offsets in the file do not overflow. */
static uint64_t buffer_length(const struct kb_barman *barman)
{
	uint64_t length = barman->header.buffer_length;

	return length < BARMAN_OPEN_END ? length : BARMAN_OPEN_END;
}

/* Add [start, end) of the record buffer, unless it is empty. */
static void add_segment(struct kb_barman *barman, uint64_t start, uint64_t end)
{
	const struct kb_header *h = &barman->header;

	if (start >= end)
		return;
	barman->segments[barman->nr_segments++] = (struct barman_segment){
		.start = h->buffer_start + start,
		.end = h->buffer_start + end,
	};
}

static void linear_segments(struct kb_barman *barman)
{
	const struct kb_header *h = &barman->header;
	uint64_t end = h->write_offset;

	barman->open_ended = end == BARMAN_OPEN_END && h->buffer_length == end && !h->total_written;
	if (end > buffer_length(barman)) {
		barman_finding(barman, KB_NO_OFFSET, "the write offset %" PRIu64
			       " is behind the end of the buffer of %" PRIu64 " bytes",
			       end, h->buffer_length);
		end = buffer_length(barman);
	}
	if (h->read_offset > end)
		barman_finding(barman, KB_NO_OFFSET, "the read offset %" PRIu64
			       " is behind the write offset %" PRIu64, h->read_offset, end);
	add_segment(barman, h->read_offset, end);
}

/*
 * Length of the data in a ring. Arm's agent and kbarman write offsets that only grow. Other
 * writers store offsets modulo the ring's size; then only total_written distinguishes a full
 * ring from an empty one.
 */
static uint64_t ring_data_length(struct kb_barman *barman)
{
	const struct kb_header *h = &barman->header;
	uint64_t n = buffer_length(barman), w = h->write_offset, r = h->read_offset;
	uint64_t reduced_w, reduced_r;

	if (w > r && w - r <= n)
		return w - r;
	if (w == r)
		return w < n && h->total_written > w && h->total_written >= n ? n : 0;
	if (w > r || r >= n)
		barman_finding(barman, KB_NO_OFFSET,
			       "read offset %" PRIu64 " and write offset %" PRIu64
			       " contradict a ring of %" PRIu64 " bytes",
			       r, w, n);
	else if (h->total_written < n)
		barman_finding(barman, KB_NO_OFFSET,
			       "the offsets say that the ring has wrapped, but "
			       "%" PRIu64 " of its %" PRIu64 " bytes were written",
			       h->total_written, n);
	if (w > r)
		return n;
	reduced_w = w % n;
	reduced_r = r % n;
	return reduced_w > reduced_r ? reduced_w - reduced_r : n - reduced_r + reduced_w;
}

static void ring_segments(struct kb_barman *barman)
{
	const struct kb_header *h = &barman->header;
	uint64_t length, start, ahead;

	if (!h->buffer_length) {
		if (h->write_offset != h->read_offset)
			barman_finding(barman, KB_NO_OFFSET, "a ring of 0 bytes can't hold data");
		return;
	}
	length = ring_data_length(barman);
	start = h->read_offset % buffer_length(barman);
	ahead = buffer_length(barman) - start;
	if (length <= ahead) {
		add_segment(barman, start, start + length);
	} else {
		add_segment(barman, start, buffer_length(barman));
		add_segment(barman, 0, length - ahead);
	}
}

static void lay_out(struct kb_barman *barman)
{
	const struct kb_header *h = &barman->header;

	barman->nr_segments = 0;
	if (h->buffer_length > BARMAN_OPEN_END)
		barman_finding(barman, KB_NO_OFFSET,
			       "a buffer of %" PRIu64 " bytes is not possible", h->buffer_length);
	if (h->data_store_type == KB_STORE_LINEAR)
		linear_segments(barman);
	else
		ring_segments(barman);
}

void barman_cursor_init(struct kb_barman *barman)
{
	const struct kb_header *h = &barman->header;

	barman->segment = 0;
	barman->ended = false;
	barman->told = false;
	barman->failure.code = 0;
	barman->window_offset = 0;
	barman->nr_findings = barman->nr_header_findings;
	if (!barman->salvaged)
		lay_out(barman);
	barman->at = barman->end = barman->window = NULL;
	barman->window_offset = barman->nr_segments ? barman->segments[0].start : h->buffer_start;
}

uint64_t barman_position(const struct kb_barman *barman, uint64_t offset)
{
	uint64_t before = 0;

	for (unsigned int i = 0; i < barman->nr_segments; i++) {
		if (offset >= barman->segments[i].start && offset < barman->segments[i].end)
			return before + offset - barman->segments[i].start;
		before += barman->segments[i].end - barman->segments[i].start;
	}
	return UINT64_MAX;
}

void barman_go(struct kb_barman *barman, uint64_t position)
{
	for (barman->segment = 0; barman->segment < barman->nr_segments; barman->segment++) {
		const struct barman_segment *segment = &barman->segments[barman->segment];

		if (position < segment->end - segment->start) {
			barman->window_offset = segment->start + position;
			break;
		}
		position -= segment->end - segment->start;
	}
	barman->at = barman->end = barman->window = NULL;
}

static void next_segment(struct kb_barman *barman)
{
	barman->segment++;
	barman->at = barman->end = barman->window = NULL;
	if (barman->segment < barman->nr_segments)
		barman->window_offset = barman->segments[barman->segment].start;
}

/* The block structure is broken: report it and go on with the next segment. */
static void broken(struct kb_barman *barman, uint64_t offset, const char *format, uint64_t number)
	__attribute__((format(printf, 3, 0)));

static void broken(struct kb_barman *barman, uint64_t offset, const char *format, uint64_t number)
{
	barman_finding(barman, offset, format, number);
	next_segment(barman);
}

/* Only @got bytes of the block at @block are there, or the file ended before the block. */
static void cut_short(struct kb_barman *barman, uint64_t block, size_t got)
{
	uint64_t end = block + got;

	if (end > barman->source.size)
		end = barman->source.size;
	if (barman->open_ended && end == block)
		next_segment(barman);
	else if (barman->open_ended)
		broken(barman, end, "the file ends here, inside a block, at byte %" PRIu64
		       " of the record buffer", end - barman->header.buffer_start);
	else
		broken(barman, end, "the file ends here, %" PRIu64 " bytes of records are missing",
		       barman->segments[barman->segment].end - end);
}

static void tell_progress(const struct kb_barman *barman, uint64_t at)
{
	uint64_t done = 0, total = 0;

	for (unsigned int i = 0; i < barman->nr_segments; i++) {
		total += barman->segments[i].end - barman->segments[i].start;
		if (i < barman->segment)
			done = total;
	}
	/* The end of data from a pipe is not known in advance. */
	if (barman->open_ended)
		total = 0;
	kb_progress_tell("reading", done + at - barman->segments[barman->segment].start, total);
}

int barman_cursor_advance(struct kb_barman *barman, struct kb_error *err)
{
	unsigned int word = barman->header.word_size;
	bool swap = barman->header.big_endian != KB_HOST_BIG_ENDIAN;
	uint64_t padding_bit = UINT64_C(1) << (word * 8 - 1);
	uint64_t at = barman->window_offset + (barman->at - barman->window);

	while (barman->segment < barman->nr_segments) {
		uint64_t left, length, whole;
		const uint8_t *bytes;
		struct kb_error why;
		size_t got;

		if (!barman->window)
			at = barman->window_offset;
		left = barman->segments[barman->segment].end - at;
		if (left < word) {
			/* If the size of a ring is odd, no block uses its last bytes. */
			bool rest = barman->segment + 1 < barman->nr_segments ||
				    barman->header.data_store_type == KB_STORE_CIRCULAR;

			if (left && !rest)
				broken(barman, at, "%" PRIu64 " stray bytes behind the last block",
				       left);
			else
				next_segment(barman);
			continue;
		}
		if (barman->probe_end && at + word > barman->probe_end)
			return 0;
		bytes = kb_source_at(&barman->source, at, word, &got, &why);
		if (!bytes && why.code) {
			*err = why;
			return why.code;
		}
		if (!bytes || got < word) {
			cut_short(barman, at, got);
			continue;
		}
		length = kb_load_word(bytes, word, swap);
		whole = word + (length & ~padding_bit);
		if (whole < word || whole > left) {
			broken(barman, at,
			       "a block of %" PRIu64 " bytes does not fit into the record "
			       "buffer",
			       length & ~padding_bit);
			continue;
		}
		if (length & padding_bit || whole > BARMAN_BLOCK_MAX) {
			if (!(length & padding_bit))
				barman_finding(barman, at,
					       "a record of %" PRIu64 " bytes is too long", length);
			at += whole;
			barman->at = barman->end = barman->window =
				bytes; /* not NULL: `at` is valid */
			barman->window_offset = at;
			continue;
		}
		if (barman->probe_end && at + whole > barman->probe_end)
			return 0;
		bytes = kb_source_at(&barman->source, at, whole, &got, &why);
		if (!bytes && why.code) {
			*err = why;
			return why.code;
		}
		if (got < whole) {
			cut_short(barman, at, got);
			continue;
		}
		if (barman->stop && *barman->stop)
			return kb_error_set(err, -EINTR, KB_NO_OFFSET, "interrupted");
		tell_progress(barman, at);
		barman->at = barman->window = bytes;
		barman->end = bytes + (got < left ? got : left);
		barman->window_offset = at;
		return 1;
	}
	barman->at = barman->end = barman->window = NULL;
	return 0;
}
