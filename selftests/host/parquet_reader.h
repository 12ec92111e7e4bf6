/* SPDX-License-Identifier: MIT */
/*
 * A small reader of Parquet for tests, written from the format's text: it shares nothing with the
 * library. It asserts nothing itself; whatever is wrong sets `broken`.
 */
#ifndef KBARMAN_PARQUET_READER_H
#define KBARMAN_PARQUET_READER_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

static bool broken;

struct bytes {
	const uint8_t *at, *end;
};

/* ---- Thrift's compact protocol ---- */

static uint8_t get_byte(struct bytes *b)
{
	if (b->at < b->end)
		return *b->at++;
	broken = true;
	return 0;
}

static uint64_t get_varint(struct bytes *b)
{
	uint64_t value = 0;

	for (int shift = 0; shift < 64; shift += 7) {
		uint8_t byte = get_byte(b);

		value |= (uint64_t)(byte & 0x7f) << shift;
		if (byte < 0x80)
			break;
	}
	return value;
}

static int64_t get_zigzag(struct bytes *b)
{
	uint64_t value = get_varint(b);

	return (int64_t)(value >> 1 ^ -(value & 1));
}

static struct bytes get_bytes(struct bytes *b, uint64_t length)
{
	struct bytes part = { b->at, b->at };

	if (length > (uint64_t)(b->end - b->at)) {
		broken = true;
		length = 0;
	}
	b->at += length;
	part.end += length;
	return part;
}

static void skip(struct bytes *b, int type)
{
	uint8_t head, kind;
	uint64_t nr;

	switch (type) {
	case 1: case 2:
		break;
	case 3:
		get_byte(b);
		break;
	case 4: case 5: case 6:
		get_varint(b);
		break;
	case 8:
		get_bytes(b, get_varint(b));
		break;
	case 9:
		head = get_byte(b);
		nr = head >> 4 == 15 ? get_varint(b) : head >> 4;
		while (nr-- && !broken)
			skip(b, head & 15);
		break;
	case 12:
		while ((kind = get_byte(b)) && !broken) {
			if (!(kind >> 4))
				get_varint(b);
			skip(b, kind & 15);
		}
		break;
	default:
		broken = true;
	}
}

/* The value of a field of the struct that begins at @b; its type, 0 if there is none. */
static int field_of(struct bytes b, int field, struct bytes *value)
{
	int number = 0;
	uint8_t head;

	while ((head = get_byte(&b)) && !broken) {
		number = head >> 4 ? number + (head >> 4) : (int)get_zigzag(&b);
		*value = b;
		if (number == field)
			return head & 15;
		skip(&b, head & 15);
	}
	return 0;
}

static int64_t number_of(struct bytes b, int field)
{
	struct bytes value;
	int type = field_of(b, field, &value);

	if (type == 1 || type == 2)
		return type == 1;
	if (type < 4 || type > 6) {
		broken = true;
		return -1;
	}
	return get_zigzag(&value);
}

static struct bytes text_of(struct bytes b, int field)
{
	struct bytes value = { NULL, NULL };

	if (field_of(b, field, &value) != 8)
		return (struct bytes) { NULL, NULL };
	return get_bytes(&value, get_varint(&value));
}

static struct bytes struct_of(struct bytes b, int field)
{
	struct bytes value = b;

	broken |= field_of(b, field, &value) != 12;
	return value;
}

/* The number of elements of a list; @b becomes the first one. */
static uint64_t list_of(struct bytes *b, int field)
{
	struct bytes value = *b;
	uint8_t head;

	if (field_of(*b, field, &value) != 9)
		return 0;
	head = get_byte(&value);
	*b = value;
	return head >> 4 == 15 ? get_varint(b) : head >> 4;
}

/* ---- encodings ---- */

static uint64_t get_packed(const uint8_t *from, uint64_t bit, unsigned int width)
{
	uint64_t value = 0;

	for (unsigned int i = 0; i < width; i++, bit++)
		value |= (uint64_t)(from[bit / 8] >> bit % 8 & 1) << i;
	return value;
}

static void get_hybrid(struct bytes b, unsigned int width, uint32_t *to, uint64_t nr)
{
	for (uint64_t done = 0; done < nr && !broken;) {
		uint64_t head = get_varint(&b), run = head >> 1, value = 0;

		if (head & 1) {
			struct bytes packed = get_bytes(&b, run * width);

			for (uint64_t i = 0; i < run * 8 && done < nr && !broken; i++)
				to[done++] = (uint32_t)get_packed(packed.at, i * width, width);
			continue;
		}
		broken |= !run;
		for (unsigned int at = 0; at < width; at += 8)
			value |= (uint64_t)get_byte(&b) << at;
		while (run-- && done < nr)
			to[done++] = (uint32_t)value;
	}
}

static void get_delta(struct bytes b, uint64_t *to, uint64_t nr)
{
	uint64_t block = get_varint(&b), minis = get_varint(&b), total = get_varint(&b), done = 0;
	uint64_t value = (uint64_t)get_zigzag(&b);

	broken |= total != nr || block % 128 || !minis || block / minis % 32;
	if (nr && !broken)
		to[done++] = value;
	while (done < nr && !broken) {
		uint64_t least = (uint64_t)get_zigzag(&b);
		struct bytes widths = get_bytes(&b, minis);

		for (uint64_t mini = 0; mini < minis && done < nr && !broken; mini++) {
			struct bytes packed = get_bytes(&b, block / minis * widths.at[mini] / 8);

			for (uint64_t i = 0; i < block / minis && done < nr && !broken; i++) {
				value += least + get_packed(packed.at, i * widths.at[mini],
							    widths.at[mini]);
				to[done++] = value;
			}
		}
	}
	broken |= b.at != b.end;
}

static uint64_t get_le(struct bytes *b, unsigned int size)
{
	struct bytes part = get_bytes(b, size);
	uint64_t value = 0;

	for (unsigned int i = 0; i < size && !broken; i++)
		value |= (uint64_t)part.at[i] << i * 8;
	return value;
}

/* ---- pages ---- */

static struct bytes unpack(struct bytes from, int codec, uint64_t size)
{
	uint8_t *to = malloc(size + 1);
	z_stream stream = { .next_in = (uint8_t *)from.at, .avail_in = (uInt)(from.end - from.at),
			    .next_out = to, .avail_out = (uInt)size };

	if (codec == 0) {
		broken |= (uint64_t)(from.end - from.at) != size;
		memcpy(to, from.at, broken ? 0 : size);
	} else if (codec == 2) {
		broken |= inflateInit2(&stream, MAX_WBITS + 16) ||
			  inflate(&stream, Z_FINISH) != Z_STREAM_END || stream.avail_out;
		inflateEnd(&stream);
	} else {
		void *library = dlopen("libzstd.so.1", RTLD_LAZY);
		size_t (*decompress)(void *, size_t, const void *, size_t) = NULL;

		if (library)
			*(void **)&decompress = dlsym(library, "ZSTD_decompress");
		broken |= !decompress ||
			  decompress(to, size, from.at, (size_t)(from.end - from.at)) != size;
	}
	return (struct bytes) { to, to + size };	/* freed at the end of the test */
}

/* Read the page at @at of the file, of that type, and set its header. */
static struct bytes read_page(struct bytes file, uint64_t at, int codec, struct bytes *header)
{
	struct bytes b = { file.at + at, file.end }, packed;

	*header = b;
	skip(&b, 12);
	packed = get_bytes(&b, (uint64_t)number_of(*header, 3));
	broken |= (uint32_t)number_of(*header, 4) !=
		  (uint32_t)crc32(0, packed.at, (uInt)(packed.end - packed.at));
	return unpack(packed, codec, (uint64_t)number_of(*header, 2));
}

#endif
