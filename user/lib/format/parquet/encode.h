/* SPDX-License-Identifier: MIT */
/*
 * The encodings of Parquet: bytes of pages. Source: "Parquet encoding definitions" in the
 * documentation of parquet-format.
 */
#ifndef KB_LIB_FORMAT_PARQUET_ENCODE_H
#define KB_LIB_FORMAT_PARQUET_ENCODE_H

#include <stddef.h>
#include <stdint.h>

#include "base/io/out_packet.h"

/* Bits that every value up to @most fits into. */
static inline unsigned int kb_parquet_width(uint64_t most)
{
	return most ? 64 - (unsigned int)__builtin_clzll(most) : 0;
}

/*
 * Append the hybrid of run lengths and packed bits, for levels and numbers of a dictionary. Each of
 * the @nr values fits into @width bits, at most 32.
 */
void kb_parquet_put_hybrid(struct kb_out *out, const uint32_t *values, size_t nr,
			   unsigned int width);

/* Append DELTA_BINARY_PACKED, for numbers that are near to the one before: any 64 bits. */
void kb_parquet_put_delta(struct kb_out *out, const uint64_t *values, size_t nr);

/* Append truth values, a byte each, as PLAIN: a bit each. */
void kb_parquet_put_bits(struct kb_out *out, const uint8_t *values, size_t nr);

/* Append numbers as PLAIN: 8 bytes each. */
void kb_parquet_put_plain(struct kb_out *out, const uint64_t *values, size_t nr);

/* Append a text as PLAIN: its length in 4 bytes, and the text. */
void kb_parquet_put_text(struct kb_out *out, const char *text, size_t length);

#endif
