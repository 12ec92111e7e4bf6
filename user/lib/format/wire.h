/* SPDX-License-Identifier: MIT */
/*
 * format/: codecs: bytes become messages, and messages bytes. No codec knows what another one's
 * messages mean. Those of one file are here, with what several need: integers (wire.h, leb.h),
 * protocol buffers, compression. Larger ones have folders of their own.
 *
 * Integers in a byte stream, at any alignment and in either byte order. @swap: the stream's
 * byte order is not that of this machine. If @swap is a constant, the check costs nothing.
 */
#ifndef KBARMAN_WIRE_H
#define KBARMAN_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define KB_HOST_BIG_ENDIAN	(__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__)
#define KB_SWAP_LE		KB_HOST_BIG_ENDIAN
#define KB_SWAP_BE		(!KB_HOST_BIG_ENDIAN)

#define kb_always_inline	inline __attribute__((always_inline))
#define kb_likely(x)		__builtin_expect(!!(x), 1)
#define kb_unlikely(x)		__builtin_expect(!!(x), 0)

static kb_always_inline uint16_t kb_load16(const void *from, bool swap)
{
	uint16_t v;

	memcpy(&v, from, sizeof(v));
	return swap ? __builtin_bswap16(v) : v;
}

static kb_always_inline uint32_t kb_load32(const void *from, bool swap)
{
	uint32_t v;

	memcpy(&v, from, sizeof(v));
	return swap ? __builtin_bswap32(v) : v;
}

static kb_always_inline uint64_t kb_load64(const void *from, bool swap)
{
	uint64_t v;

	memcpy(&v, from, sizeof(v));
	return swap ? __builtin_bswap64(v) : v;
}

static kb_always_inline void kb_store16(void *to, uint16_t v, bool swap)
{
	v = swap ? __builtin_bswap16(v) : v;
	memcpy(to, &v, sizeof(v));
}

static kb_always_inline void kb_store32(void *to, uint32_t v, bool swap)
{
	v = swap ? __builtin_bswap32(v) : v;
	memcpy(to, &v, sizeof(v));
}

static kb_always_inline void kb_store64(void *to, uint64_t v, bool swap)
{
	v = swap ? __builtin_bswap64(v) : v;
	memcpy(to, &v, sizeof(v));
}

/* A word of the target's pointer size, 4 or 8 bytes. */
static kb_always_inline uint64_t kb_load_word(const void *from, unsigned int size, bool swap)
{
	return size == 8 ? kb_load64(from, swap) : kb_load32(from, swap);
}

static kb_always_inline void kb_store_word(void *to, uint64_t v, unsigned int size, bool swap)
{
	if (size == 8)
		kb_store64(to, v, swap);
	else
		kb_store32(to, (uint32_t)v, swap);
}

/*
 * A cursor for input that may end anywhere. Reads after the end give 0 and set `short_read`,
 * so that one check is enough for a series of reads.
 */
struct kb_cursor {
	const uint8_t *at;
	const uint8_t *end;
	bool swap;
	bool short_read;
};

static inline const uint8_t *kb_cursor_take(struct kb_cursor *c, uint64_t bytes)
{
	const uint8_t *at = c->at;

	if (bytes > (uint64_t)(c->end - at)) {
		c->at = c->end;
		c->short_read = true;
		return NULL;
	}
	c->at += bytes;
	return at;
}

static inline uint8_t kb_cursor_u8(struct kb_cursor *c)
{
	const uint8_t *at = kb_cursor_take(c, 1);

	return at ? *at : 0;
}

static inline uint16_t kb_cursor_u16(struct kb_cursor *c)
{
	const uint8_t *at = kb_cursor_take(c, 2);

	return at ? kb_load16(at, c->swap) : 0;
}

static inline uint32_t kb_cursor_u32(struct kb_cursor *c)
{
	const uint8_t *at = kb_cursor_take(c, 4);

	return at ? kb_load32(at, c->swap) : 0;
}

static inline uint64_t kb_cursor_u64(struct kb_cursor *c)
{
	const uint8_t *at = kb_cursor_take(c, 8);

	return at ? kb_load64(at, c->swap) : 0;
}

static inline uint64_t kb_cursor_word(struct kb_cursor *c, unsigned int size)
{
	const uint8_t *at = kb_cursor_take(c, size);

	return at ? kb_load_word(at, size, c->swap) : 0;
}

#endif
