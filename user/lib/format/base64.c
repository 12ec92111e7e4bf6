// SPDX-License-Identifier: MIT
/* Base64: three bytes become four characters. */
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
