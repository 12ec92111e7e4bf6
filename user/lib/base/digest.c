// SPDX-License-Identifier: MIT
#include <string.h>

#include "base/digest.h"

/* The fractions of the square roots of the first eight primes, as SHA-512 has them. */
static const uint64_t first[8] = {
	0x6a09e667f3bcc908, 0xbb67ae8584caa73b, 0x3c6ef372fe94f82b, 0xa54ff53a5f1d36f1,
	0x510e527fade682d1, 0x9b05688c2b3e6c1f, 0x1f83d9abfb41bd6b, 0x5be0cd19137e2179,
};

/* Which word of the block comes when. */
static const uint8_t order[10][16] = {
	{ 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 },
	{ 14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3 },
	{ 11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4 },
	{ 7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8 },
	{ 9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13 },
	{ 2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9 },
	{ 12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11 },
	{ 13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10 },
	{ 6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5 },
	{ 10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0 },
};

static uint64_t rotate(uint64_t word, unsigned int bits)
{
	return word >> bits | word << (64 - bits);
}

static void mix(uint64_t v[16], unsigned int a, unsigned int b, unsigned int c, unsigned int d,
		uint64_t x, uint64_t y)
{
	v[a] += v[b] + x;
	v[d] = rotate(v[d] ^ v[a], 32);
	v[c] += v[d];
	v[b] = rotate(v[b] ^ v[c], 24);
	v[a] += v[b] + y;
	v[d] = rotate(v[d] ^ v[a], 16);
	v[c] += v[d];
	v[b] = rotate(v[b] ^ v[c], 63);
}

static uint64_t word_at(const uint8_t *bytes)
{
	uint64_t word = 0;

	for (unsigned int i = 8; i-- > 0;)
		word = word << 8 | bytes[i];
	return word;
}

static void add_block(struct kb_digest *digest, const uint8_t block[128], size_t length, uint64_t last)
{
	uint64_t v[16], m[16];

	digest->before += length;
	for (unsigned int i = 0; i < 8; i++) {
		v[i] = digest->state[i];
		v[8 + i] = first[i];
	}
	for (unsigned int i = 0; i < 16; i++)
		m[i] = word_at(block + 8 * i);
	v[12] ^= digest->before;
	v[14] ^= last;
	for (unsigned int round = 0; round < 12; round++) {
		const uint8_t *s = order[round % 10];

		for (unsigned int i = 0; i < 4; i++)
			mix(v, i, 4 + i, 8 + i, 12 + i, m[s[2 * i]], m[s[2 * i + 1]]);
		for (unsigned int i = 0; i < 4; i++)
			mix(v, i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4, m[s[8 + 2 * i]],
			    m[s[9 + 2 * i]]);
	}
	for (unsigned int i = 0; i < 8; i++)
		digest->state[i] ^= v[i] ^ v[8 + i];
}

void kb_digest_begin(struct kb_digest *digest)
{
	*digest = (struct kb_digest){ 0 };
	memcpy(digest->state, first, sizeof(first));
	digest->state[0] ^= 0x01010000 | KB_DIGEST_BYTES;
}

/* The last block may be whole, so a block waits for what follows it. */
void kb_digest_bytes(struct kb_digest *digest, const void *bytes, size_t nr)
{
	const uint8_t *at = bytes;
	size_t some;

	for (; nr; at += some, nr -= some) {
		if (digest->length == sizeof(digest->block)) {
			add_block(digest, digest->block, digest->length, 0);
			digest->length = 0;
		}
		some = sizeof(digest->block) - digest->length;
		if (some > nr)
			some = nr;
		memcpy(digest->block + digest->length, at, some);
		digest->length += some;
	}
}

void kb_digest_number(struct kb_digest *digest, uint64_t number)
{
	uint8_t bytes[8];

	for (unsigned int i = 0; i < 8; i++)
		bytes[i] = (uint8_t)(number >> (8 * i));
	kb_digest_bytes(digest, bytes, sizeof(bytes));
}

void kb_digest_end(struct kb_digest *digest, uint8_t name[KB_DIGEST_BYTES])
{
	memset(digest->block + digest->length, 0, sizeof(digest->block) - digest->length);
	add_block(digest, digest->block, digest->length, ~UINT64_C(0));
	for (unsigned int i = 0; i < KB_DIGEST_BYTES; i++)
		name[i] = (uint8_t)(digest->state[i / 8] >> (8 * (i % 8)));
}
