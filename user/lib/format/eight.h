/* SPDX-License-Identifier: MIT */
/*
 * Text looked at eight bytes at a time: nearly all of it is printable ASCII that needs no
 * second look.
 */
#ifndef KB_LIB_FORMAT_EIGHT_H
#define KB_LIB_FORMAT_EIGHT_H

#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define KB_EIGHT(byte)	(UINT64_C(0x0101010101010101) * (byte))

/* Not 0 if one of the bytes is 0, or has its top bit set. */
static inline uint64_t kb_eight_zero(uint64_t bytes)
{
	return ((bytes - KB_EIGHT(0x01)) | bytes) & KB_EIGHT(0x80);
}

/* Only printable ASCII, and nothing that JSON escapes? */
static inline bool kb_eight_simple(uint64_t bytes)
{
	uint64_t odd = kb_eight_zero(bytes);

	return !odd && !(((bytes - KB_EIGHT(0x20)) & KB_EIGHT(0x80)) |
			 kb_eight_zero(bytes ^ KB_EIGHT('"')) |
			 kb_eight_zero(bytes ^ KB_EIGHT('\\')) |
			 kb_eight_zero(bytes ^ KB_EIGHT(0x7f)));
}

/* The 1 to 7 bytes at @from, the first one the lowest, above them a harmless one. */
static inline uint64_t kb_eight_of_few(const char *from, size_t length)
{
	uint64_t bytes = KB_EIGHT('x') << 8 * length;
	uint32_t low, high;

	if (length >= 4) {
		memcpy(&low, from, 4);
		memcpy(&high, from + length - 4, 4);
		return bytes | le32toh(low) | (uint64_t)le32toh(high) << 8 * (length - 4);
	}
	bytes |= (uint8_t)from[0] | (uint64_t)(uint8_t)from[length - 1] << 8 * (length - 1);
	return bytes | (uint64_t)(uint8_t)from[length / 2] << 8 * (length / 2);
}

/* kb_eight_simple() of all the bytes at @text. */
static inline bool kb_eight_all_simple(const char *text, size_t length)
{
	const char *end = text + length;
	uint64_t bytes;

	if (length < 8)
		return !length || kb_eight_simple(kb_eight_of_few(text, length));
	for (;;) {
		memcpy(&bytes, text, 8);
		if (!kb_eight_simple(bytes))
			return false;
		text += 8;
		if (text == end)
			return true;
		if (end - text < 8)	/* the last ones once more with some before them */
			text = end - 8;
	}
}

#endif
