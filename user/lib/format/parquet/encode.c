// SPDX-License-Identifier: MIT
/* See encode.h. */
#include "format/parquet/encode.h"
#include "format/parquet/thrift.h"
#include "format/wire.h"

#define GROUP		8U	/* values in a group of packed bits */
#define BLOCK		128U	/* values in a block of deltas */
#define MINIBLOCKS	4U	/* parts of it, with a width each */
#define MINI		(BLOCK / MINIBLOCKS)

/* Bits one after the other, the lowest ones first. */
struct packer {
	uint8_t *at;
	uint64_t bits;
	unsigned int nr;	/* below 64 */
};

static inline void pack(struct packer *packer, uint64_t value, unsigned int width)
{
	packer->bits |= packer->nr < 64 ? value << packer->nr : 0;
	packer->nr += width;
	if (packer->nr < 64)
		return;
	kb_store64(packer->at, packer->bits, KB_SWAP_LE);
	packer->at += 8;
	packer->nr -= 64;
	packer->bits = packer->nr ? value >> (width - packer->nr) : 0;
}

static uint8_t *pack_rest(struct packer *packer)
{
	for (unsigned int done = 0; done < packer->nr; done += 8)
		*packer->at++ = (uint8_t)(packer->bits >> done);
	return packer->at;
}

/* ---- run lengths and packed bits ---- */

/* Values as groups of packed bits; the last group is filled with zeros. */
static void put_groups(struct kb_out *out, const uint32_t *values, size_t nr, unsigned int width)
{
	size_t groups = (nr + GROUP - 1) / GROUP;
	uint8_t *at = kb_out_reserve(out, KB_VARINT_MAX + groups * width + 8);
	struct packer packer = { 0 };

	if (!at || !nr)
		return;
	packer.at = kb_varint_put(at, groups << 1 | 1);
	for (size_t i = 0; i < nr; i++)
		pack(&packer, values[i], width);
	for (size_t i = nr; i < groups * GROUP; i++)
		pack(&packer, 0, width);
	kb_out_commit(out, pack_rest(&packer));
}

static void put_run(struct kb_out *out, uint32_t value, size_t nr, unsigned int width)
{
	uint8_t *at = kb_out_reserve(out, KB_VARINT_MAX + 4);

	if (!at)
		return;
	at = kb_varint_put(at, nr << 1);
	for (unsigned int done = 0; done < width; done += 8)
		*at++ = (uint8_t)(value >> done);
	kb_out_commit(out, at);
}

void kb_parquet_put_hybrid(struct kb_out *out, const uint32_t *values, size_t nr,
			   unsigned int width)
{
	size_t from = 0, at = 0;	/* what is not written yet; what was not looked at */

	while (at < nr) {
		size_t end = at + 1, fill = (from - at) % GROUP;

		while (end < nr && values[end] == values[at])
			end++;
		/* the run gives up what completes the group before it */
		if (end - at >= fill + GROUP) {
			put_groups(out, values + from, at + fill - from, width);
			put_run(out, values[at], end - at - fill, width);
			from = end;
		}
		at = end;
	}
	put_groups(out, values + from, nr - from, width);
}

/* ---- deltas ---- */

/* Up to BLOCK values after values[-1]. Differences wrap, so they fit into 64 bits. */
static uint8_t *put_block(uint8_t *at, const uint64_t *values, size_t nr)
{
	uint64_t deltas[BLOCK] = { 0 };
	int64_t least = INT64_MAX;
	uint8_t *widths;

	for (size_t i = 0; i < nr; i++) {
		deltas[i] = values[i] - values[(ptrdiff_t)i - 1];
		least = (int64_t)deltas[i] < least ? (int64_t)deltas[i] : least;
	}
	widths = kb_varint_put(at, kb_zigzag(least));
	at = widths + MINIBLOCKS;
	for (unsigned int mini = 0; mini < MINIBLOCKS; mini++) {
		struct packer packer = { .at = at };
		uint64_t most = 0;

		for (unsigned int i = mini * MINI; i < (mini + 1) * MINI; i++) {
			deltas[i] = i < nr ? deltas[i] - (uint64_t)least : 0;
			most |= deltas[i];
		}
		widths[mini] = (uint8_t)kb_parquet_width(most);
		/* a part without values has a width of 0 and no bytes */
		for (unsigned int i = mini * MINI; widths[mini] && i < (mini + 1) * MINI; i++)
			pack(&packer, deltas[i], widths[mini]);
		at = pack_rest(&packer);
	}
	return at;
}

void kb_parquet_put_delta(struct kb_out *out, const uint64_t *values, size_t nr)
{
	uint8_t *at = kb_out_reserve(out, 4 * KB_VARINT_MAX);

	if (!at)
		return;
	at = kb_varint_put(kb_varint_put(kb_varint_put(at, BLOCK), MINIBLOCKS), nr);
	kb_out_commit(out, kb_varint_put(at, kb_zigzag(nr ? (int64_t)values[0] : 0)));
	for (size_t i = 1; i < nr; i += BLOCK) {
		at = kb_out_reserve(out, KB_VARINT_MAX + MINIBLOCKS + (BLOCK + 1) * 8);
		if (!at)
			return;
		kb_out_commit(out, put_block(at, values + i, nr - i < BLOCK ? nr - i : BLOCK));
	}
}

/* ---- plain values ---- */

void kb_parquet_put_bits(struct kb_out *out, const uint8_t *values, size_t nr)
{
	uint8_t *at = kb_out_reserve(out, nr / 8 + 8);
	struct packer packer = { .at = at };

	if (!at)
		return;
	for (size_t i = 0; i < nr; i++)
		pack(&packer, values[i] != 0, 1);
	kb_out_commit(out, pack_rest(&packer));
}

void kb_parquet_put_plain(struct kb_out *out, const uint64_t *values, size_t nr)
{
	uint8_t *at = kb_out_reserve(out, nr * 8);

	if (!at)
		return;
	for (size_t i = 0; i < nr; i++, at += 8)
		kb_store64(at, values[i], KB_SWAP_LE);
	kb_out_commit(out, at);
}

void kb_parquet_put_text(struct kb_out *out, const char *text, size_t length)
{
	uint8_t *at = kb_out_reserve(out, 4);

	if (!at)
		return;
	kb_store32(at, (uint32_t)length, KB_SWAP_LE);
	kb_out_commit(out, at + 4);
	kb_out_bytes(out, text, length);
}
