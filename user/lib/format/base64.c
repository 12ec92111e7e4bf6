// SPDX-License-Identifier: MIT
/* Base64: three bytes become four characters. */
#include <errno.h>
#include <string.h>

#include "format/base64.h"

static const char alphabet[] =
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static void put(char *to, uint32_t bits)
{
	to[0] = alphabet[bits >> 18 & 63];
	to[1] = alphabet[bits >> 12 & 63];
	to[2] = alphabet[bits >> 6 & 63];
	to[3] = alphabet[bits & 63];
}

void kb_base64(char *to, const uint8_t *from, size_t length)
{
	for (; length >= 3; length -= 3, from += 3, to += 4)
		put(to, (uint32_t)from[0] << 16 | (uint32_t)from[1] << 8 | from[2]);
	if (!length)
		return;
	put(to, (uint32_t)from[0] << 16 | (length > 1 ? (uint32_t)from[1] << 8 : 0));
	memset(to + length + 1, '=', 3 - length);
}

/* The six bits of a character, or -1. */
static int bits_of(char c)
{
	const char *at = c ? strchr(alphabet, c) : NULL;

	return at ? (int)(at - alphabet) : -1;
}

int kb_base64_read(uint8_t *to, size_t *bytes, const char *text, size_t length)
{
	size_t missing = 0;

	if (length % 4)
		return -EINVAL;
	while (missing < 2 && missing < length && text[length - 1 - missing] == '=')
		missing++;
	*bytes = length / 4 * 3 - missing;
	for (size_t i = 0, at = 0; i < length; i += 4) {
		uint32_t word = 0;

		for (size_t j = i; j < i + 4; j++) {
			int bits = j < length - missing ? bits_of(text[j]) : 0;

			if (bits < 0)
				return -EINVAL;
			word = word << 6 | (uint32_t)bits;
		}
		for (int shift = 16; shift >= 0 && at < *bytes; shift -= 8)
			to[at++] = (uint8_t)(word >> shift);
	}
	return 0;
}
