/* SPDX-License-Identifier: MIT */
/*
 * Checks text eight bytes at a time. Nearly all text is printable ASCII and needs no further
 * check.
 */
#ifndef KB_LIB_BASE_TEXT_EIGHT_H
#define KB_LIB_BASE_TEXT_EIGHT_H

#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define KB_EIGHT(byte)	(UINT64_C(0x0101010101010101) * (byte))

/* Not 0 if a byte is 0 or has its top bit set. */
static inline uint64_t kb_eight_zero(uint64_t bytes)
{
	return ((bytes - KB_EIGHT(0x01)) | bytes) & KB_EIGHT(0x80);
}

/* Whether all bytes are printable ASCII that JSON does not escape. */
static inline bool kb_eight_simple(uint64_t bytes)
{
	uint64_t odd = kb_eight_zero(bytes);

	return !odd && !(((bytes - KB_EIGHT(0x20)) & KB_EIGHT(0x80)) |
			 kb_eight_zero(bytes ^ KB_EIGHT('"')) |
			 kb_eight_zero(bytes ^ KB_EIGHT('\\')) |
			 kb_eight_zero(bytes ^ KB_EIGHT(0x7f)));
}

/* Whether all bytes are printable ASCII. */
static inline bool kb_eight_plain(uint64_t bytes)
{
	return !(kb_eight_zero(bytes) | ((bytes - KB_EIGHT(0x20)) & KB_EIGHT(0x80)) |
		 kb_eight_zero(bytes ^ KB_EIGHT(0x7f)));
}

/*
 * Load the 1 to 7 bytes at @from, the first one into the lowest byte. The other bytes are
 * harmless characters.
 */
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

/* Whether @all holds for all bytes of @text, eight at a time. Inlined, and @all with it. */
static inline __attribute__((always_inline)) bool
kb_eight_all(const char *text, size_t length, bool (*all)(uint64_t bytes))
{
	const char *end = text + length;
	uint64_t bytes;

	if (length < 8)
		return !length || all(kb_eight_of_few(text, length));
	for (;;) {
		memcpy(&bytes, text, 8);
		if (!all(bytes))
			return false;
		text += 8;
		if (text == end)
			return true;
		if (end - text < 8)	/* some bytes are checked again */
			text = end - 8;
	}
}

/* kb_eight_simple() for all bytes of @text. */
static inline bool kb_eight_all_simple(const char *text, size_t length)
{
	return kb_eight_all(text, length, kb_eight_simple);
}

/* kb_eight_plain() for all bytes of @text. */
static inline bool kb_eight_all_plain(const char *text, size_t length)
{
	return kb_eight_all(text, length, kb_eight_plain);
}

#endif
