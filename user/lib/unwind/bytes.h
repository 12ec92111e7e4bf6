/* SPDX-License-Identifier: MIT */
/*
 * Reads numbers out of a part of a section. Behind the end there are zeros and `bad`: a decoder
 * checks once after a group of numbers.
 */
#ifndef KB_LIB_UNWIND_BYTES_H
#define KB_LIB_UNWIND_BYTES_H

#include "format/wire.h"

struct kb_bytes {
	const uint8_t *data;	/* of the section */
	size_t at, end;
	bool swap;		/* the byte order is not that of this machine */
	bool bad;		/* more was read than there is */
};

static inline bool kb_bytes_has(struct kb_bytes *bytes, size_t nr)
{
	bytes->bad |= nr > bytes->end - bytes->at;
	return !bytes->bad;
}

static inline void kb_bytes_skip(struct kb_bytes *bytes, uint64_t nr)
{
	bytes->bad |= nr > bytes->end - bytes->at;
	if (!bytes->bad)
		bytes->at += nr;
}

static inline uint8_t kb_bytes_8(struct kb_bytes *bytes)
{
	return kb_bytes_has(bytes, 1) ? bytes->data[bytes->at++] : 0;
}

static inline uint16_t kb_bytes_16(struct kb_bytes *bytes)
{
	if (!kb_bytes_has(bytes, 2))
		return 0;
	bytes->at += 2;
	return kb_load16(bytes->data + bytes->at - 2, bytes->swap);
}

static inline uint32_t kb_bytes_32(struct kb_bytes *bytes)
{
	if (!kb_bytes_has(bytes, 4))
		return 0;
	bytes->at += 4;
	return kb_load32(bytes->data + bytes->at - 4, bytes->swap);
}

static inline uint64_t kb_bytes_64(struct kb_bytes *bytes)
{
	if (!kb_bytes_has(bytes, 8))
		return 0;
	bytes->at += 8;
	return kb_load64(bytes->data + bytes->at - 8, bytes->swap);
}

/* Bits above the 64th are lost. Sets *@shift to the number of bits, and *@last to the last byte. */
static inline uint64_t kb_bytes_leb(struct kb_bytes *bytes, unsigned int *shift, uint8_t *last)
{
	uint64_t value = 0;

	*shift = 0;
	do {
		*last = kb_bytes_8(bytes);
		if (*shift < 64)
			value |= (uint64_t)(*last & 0x7f) << *shift;
		*shift += *shift < 64 ? 7 : 0;
	} while (*last & 0x80);
	return value;
}

static inline uint64_t kb_bytes_unsigned(struct kb_bytes *bytes)
{
	unsigned int shift;
	uint8_t last;

	return kb_bytes_leb(bytes, &shift, &last);
}

static inline int64_t kb_bytes_signed(struct kb_bytes *bytes)
{
	unsigned int shift;
	uint8_t last;
	uint64_t value = kb_bytes_leb(bytes, &shift, &last);

	if (shift < 64 && last & 0x40)
		value |= -(UINT64_C(1) << shift);
	return (int64_t)value;
}

#endif
