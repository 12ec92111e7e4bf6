/* SPDX-License-Identifier: MIT */
/*
 * Barman captures put together byte by byte from the protocol's text, for tests of
 * the reader: nothing here is shared with the library.
 */
#ifndef SELFTESTS_BARMAN_IMAGE_H
#define SELFTESTS_BARMAN_IMAGE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct image {
	uint8_t *data;
	size_t length;
	unsigned int word;		/* 4 or 8 */
	bool big;
	size_t header_length_at, store_at, buffer_at;
};

/* What the header has; 0 everywhere is the smallest capture that there is. */
struct image_header {
	uint32_t version, store_type, target_name, sample_rate;
	uint64_t last_timestamp;
	uint32_t cores, tasks, maps, pmu_counters, charts, series;	/* table sizes */
	uint32_t tasks_used, maps_used;
	uint32_t counters_used;		/* of each core */
	uint64_t base, multiplier, divisor, unix_base;
	const char *strings;
	uint32_t strings_used, strings_max;
	bool short_store;		/* 36 bytes on 32-bit, as the text says */
};

static inline void image_bytes(struct image *im, const void *bytes, size_t length)
{
	im->data = realloc(im->data, im->length + length + 1);
	if (length)
		memcpy(im->data + im->length, bytes, length);
	im->length += length;
}

static inline void image_set(struct image *im, size_t at, uint64_t value, unsigned int size)
{
	for (unsigned int i = 0; i < size; i++)
		im->data[at + i] = value >> 8 * (im->big ? size - 1 - i : i);
}

static inline void image_put(struct image *im, uint64_t value, unsigned int size)
{
	uint8_t none[8] = { 0 };

	image_bytes(im, none, size);
	image_set(im, im->length - size, value, size);
}

static inline void image_u8(struct image *im, uint8_t v)
{
	image_put(im, v, 1);
}

static inline void image_u32(struct image *im, uint32_t v)
{
	image_put(im, v, 4);
}

static inline void image_u64(struct image *im, uint64_t v)
{
	image_put(im, v, 8);
}

static inline void image_word(struct image *im, uint64_t v)
{
	image_put(im, v, im->word);
}

static inline void image_double(struct image *im, double v)
{
	uint64_t bits;

	memcpy(&bits, &v, 8);
	image_u64(im, bits);
}

static inline void image_align(struct image *im, size_t to)
{
	while (im->length % to)
		image_u8(im, 0);
}

/*
 * Rows have values that say where they belong: core c has timestamp 100 + c, midr
 * 200 + c, mpidr 300 + c, cluster 400 + c, counters 500 + 10 c + i; task i has
 * 600 + i, 700 + i, string i; map i 800 + i, 900 + i, 0x1000 i, 0x2000 i, 0x3000 i,
 * string i; chart i string i, 1, 2, 15; series i chart i % charts, strings i, i + 1
 * and i + 2, colour 0x100 + i, multiplier i / 4, 2, 3, 1. A string's offset is its
 * number: strings are one letter and a NUL each, twice the number.
 */
static inline void image_header(struct image *im, const struct image_header *h)
{
	image_u64(im, im->word == 8 ? 0x4241524d414e3634 : 0x4241524d414e3332);
	image_u32(im, h->version);
	im->header_length_at = im->length;
	image_u32(im, 0);
	image_u32(im, h->store_type);
	image_u32(im, h->target_name);
	image_u64(im, h->last_timestamp);
	image_u32(im, h->sample_rate);
	image_u32(im, h->cores);
	image_u32(im, h->tasks);
	image_u32(im, h->maps);
	image_u32(im, h->pmu_counters);
	image_u32(im, h->strings_max);
	image_u32(im, h->series);
	image_u64(im, h->base);
	image_u64(im, h->multiplier);
	image_u64(im, h->divisor);
	image_u64(im, h->unix_base);
	image_u32(im, h->strings_used);
	for (uint32_t i = 0; i < h->strings_max; i++)
		image_u8(im, i < h->strings_used ? h->strings[i] : 0);
	for (uint32_t c = 0; c < h->cores; c++) {
		image_u64(im, h->counters_used ? 100 + c : 0);
		image_u32(im, h->counters_used ? 200 + c : 0);
		image_word(im, h->counters_used ? 300 + c : 0);
		image_u32(im, h->counters_used ? 400 + c : 0);
		image_u32(im, h->counters_used);
		for (uint32_t i = 0; i < h->pmu_counters; i++)
			image_u32(im, i < h->counters_used ? 500 + 10 * c + i : 0);
	}
	if (h->tasks)
		image_u32(im, h->tasks_used);
	for (uint32_t i = 0; i < h->tasks; i++) {
		image_u64(im, 600 + i);
		image_u32(im, 700 + i);
		image_u32(im, 2 * i);
	}
	if (h->maps)
		image_u32(im, h->maps_used);
	for (uint32_t i = 0; i < h->maps; i++) {
		if (h->tasks) {
			image_u64(im, 800 + i);
			image_u32(im, 900 + i);
		}
		image_word(im, 0x1000 * i);
		image_word(im, 0x2000 * i);
		image_word(im, 0x3000 * i);
		image_u32(im, 2 * i);
	}
	if (h->series) {
		image_u32(im, h->charts);
		for (uint32_t i = 0; i < h->charts; i++) {
			image_u32(im, 2 * i);
			image_u8(im, 1);
			image_u8(im, 2);
			image_u8(im, 15);
		}
		for (uint32_t i = 0; i < h->series; i++) {
			image_u32(im, i % h->charts);
			image_u32(im, 2 * i);
			image_u32(im, 2 * i + 2);
			image_u32(im, 2 * i + 4);
			image_u32(im, 0x100 + i);
			image_double(im, i / 4.0);
			image_u8(im, 2);
			image_u8(im, 3);
			image_u8(im, 1);
		}
	}
	image_align(im, 8);
	im->store_at = im->length;
	for (int i = 0; i < 4; i++)
		image_u64(im, 0);
	image_word(im, 0xdead);		/* base_pointer: means nothing */
	if (im->word == 4 && !h->short_store)
		image_u32(im, 0);
	image_set(im, im->header_length_at, im->length, 4);
	image_align(im, 8);
	im->buffer_at = im->length;
}

static inline void image_store(struct image *im, uint64_t buffer, uint64_t write, uint64_t read,
			       uint64_t total)
{
	image_set(im, im->store_at, buffer, 8);
	image_set(im, im->store_at + 8, write, 8);
	image_set(im, im->store_at + 16, read, 8);
	image_set(im, im->store_at + 24, total, 8);
}

/* What is behind the header is a linear store's data. */
static inline void image_linear(struct image *im)
{
	uint64_t length = im->length - im->buffer_at;

	image_store(im, length, length, 0, length);
}

/* A block begins; returns where, for image_end(). */
static inline size_t image_begin(struct image *im)
{
	image_word(im, 0);
	return im->length;
}

static inline void image_record(struct image *im, uint32_t type, uint32_t core,
				uint64_t timestamp)
{
	image_u32(im, type);
	image_u32(im, core);
	image_u64(im, timestamp);
}

/* The block ends, rounded up to the word. */
static inline void image_end(struct image *im, size_t start)
{
	while ((im->length - start) % im->word)
		image_u8(im, 0);
	image_set(im, start - im->word, im->length - start, im->word);
}

static inline void image_padding(struct image *im, uint64_t length)
{
	image_word(im, length | UINT64_C(1) << (8 * im->word - 1));
	for (uint64_t i = 0; i < length; i++)
		image_u8(im, 0xee);
}

static inline void image_switch(struct image *im, uint32_t core, uint64_t timestamp, uint32_t task,
				uint8_t reason)
{
	size_t start = image_begin(im);

	image_record(im, 3, core, timestamp);
	image_u32(im, task);
	image_u8(im, reason);
	image_end(im, start);
}

static inline void image_free(struct image *im)
{
	free(im->data);
	memset(im, 0, sizeof(*im));
}

#endif
