// SPDX-License-Identifier: MIT
/*
 * The form that makedumpfile and QEMU compress page by page: a header, one more for kdump, two
 * bitmaps with a bit for each page of the machine, a descriptor for each page that has a bit in the
 * second one, and their bytes. So a page's descriptor has the number of bits before the page's own,
 * which are counted once for each block of the bitmap. The headers are C structs of the machine: of
 * 32 or 64 bits, in its byte order. Source: IMPLEMENTATION and diskdump_mod.h of makedumpfile.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "format/memory/inside.h"
#include "format/memory/memory.h"
#include "format/wire.h"
#include "format/zstd.h"

#define PAGE_MAX	65536U	/* bytes of the largest page that a machine has */
#define BITS		4096U	/* of the bitmap in a block that is counted */
#define ROW		24U	/* bytes of a descriptor */
#define ROWS		1024U	/* descriptors that are read at once */
#define NONE		UINT64_MAX

/* Flags of a descriptor: how its page is compressed. */
#define ZLIB		0x01U
#define LZO		0x02U
#define SNAPPY		0x04U
#define ZSTD		0x20U

struct kb_kdump {
	const struct kb_memory_file *file;
	bool swap;
	uint32_t page_bytes;
	uint64_t nr_pages;
	uint64_t bitmap, rows;		/* offsets; rows: of the descriptors */
	uint64_t nr_blocks, *before;	/* bits before each block, and at last of all */
	uint64_t block;			/* whose bits these are; NONE */
	uint8_t bits[BITS / 8];
	uint64_t first, nr_read;	/* descriptors that these are */
	uint8_t read[ROW * ROWS];
	uint64_t at;			/* the page that is whole in `page`; NONE */
	uint8_t page[PAGE_MAX], packed[PAGE_MAX];
	z_stream stream;
	void *zstd;			/* its context, when a page needs one */
};

/* ---- headers ---- */

/* The members from the size of a page on, which are at @from; false: they can't be these. */
static bool read_sizes(struct kb_kdump *kdump, const uint8_t *from)
{
	uint64_t page = kb_load32(from, kdump->swap), header = kb_load32(from + 4, kdump->swap);
	uint64_t bitmaps = kb_load32(from + 8, kdump->swap);

	if (page < KB_MEMORY_PAGE || page > PAGE_MAX || page & (page - 1) || !header || !bitmaps)
		return false;
	kdump->page_bytes = (uint32_t)page;
	kdump->bitmap = page * (1 + header + bitmaps / 2);
	kdump->rows = page * (1 + header + bitmaps);
	kdump->nr_pages = kb_load32(from + 12, kdump->swap);
	return true;
}

static int read_headers(struct kb_kdump *kdump, struct kb_error *err)
{
	uint8_t head[512] = { 0 }, more[104] = { 0 };
	ssize_t got = kb_memory_pread(kdump->file, 0, head, sizeof(head), err);
	bool is_64;
	uint32_t version;
	uint64_t pages;

	if (got < 0)
		return (int)got;
	/* Versions are small numbers. */
	kdump->swap = kb_load16(head + 8, KB_SWAP_LE) ? KB_SWAP_LE : KB_SWAP_BE;
	version = kb_load32(head + 8, kdump->swap);
	is_64 = read_sizes(kdump, head + 428);
	if (!is_64 && !read_sizes(kdump, head + 416))
		return kb_memory_damaged(kdump->file, "its header has no size of a page", err);
	got = kb_memory_pread(kdump->file, kdump->page_bytes, more, sizeof(more), err);
	if (got < 0)
		return (int)got;
	if (version >= 2 && kb_load32(more + (is_64 ? 12 : 8), kdump->swap))
		return kb_memory_refuse(kdump->file, "is one of several files of a dump: join them "
				"with 'makedumpfile --reassemble FILE... DUMP'", err);
	/* The number in the first header has 32 bits. */
	pages = version >= 6 && is_64 ? kb_load64(more + 96, kdump->swap) : 0;
	if (pages > kdump->nr_pages)
		kdump->nr_pages = pages;
	if (kdump->nr_pages > (kdump->rows - kdump->bitmap) * 8 ||
	    kdump->nr_pages > UINT64_MAX / PAGE_MAX || kdump->rows > kdump->file->size)
		return kb_memory_damaged(kdump->file, "it has no whole bitmap of its pages", err);
	return 0;
}

/* ---- the bitmap ---- */

static int load_bits(struct kb_kdump *kdump, uint64_t block, struct kb_error *err)
{
	uint64_t nr = kdump->nr_pages - block * BITS;
	ssize_t got;

	if (kdump->block == block)
		return 0;
	kdump->block = NONE;
	nr = nr < BITS ? nr : BITS;
	memset(kdump->bits, 0, sizeof(kdump->bits));
	got = kb_memory_pread(kdump->file, kdump->bitmap + block * sizeof(kdump->bits), kdump->bits,
			      (nr + 7) / 8, err);
	if (got < 0)
		return (int)got;
	if (nr % 8)
		kdump->bits[nr / 8] &= (uint8_t)((1U << nr % 8) - 1);
	kdump->block = block;
	return 0;
}

/* How many of the first @nr bits of the block are set. */
static uint64_t count_bits(const struct kb_kdump *kdump, uint32_t nr)
{
	int count = 0;

	for (uint32_t i = 0; i < nr / 64; i++)
		count += __builtin_popcountll(kb_load64(kdump->bits + 8 * i, KB_SWAP_LE));
	if (nr % 64)
		count += __builtin_popcountll(kb_load64(kdump->bits + nr / 64 * 8, KB_SWAP_LE) <<
					      (64 - nr % 64));
	return (uint64_t)count;
}

static int count_pages(struct kb_kdump *kdump, struct kb_error *err)
{
	int ret = 0;

	kdump->nr_blocks = (kdump->nr_pages + BITS - 1) / BITS;
	kdump->before = calloc(kdump->nr_blocks + 1, sizeof(*kdump->before));
	if (!kdump->before)
		return kb_memory_exhausted(kdump->file, err);
	for (uint64_t i = 0; !ret && i < kdump->nr_blocks; i++) {
		ret = load_bits(kdump, i, err);
		kdump->before[i + 1] = kdump->before[i] + count_bits(kdump, BITS);
	}
	return ret;
}

/* ---- pages ---- */

/* Has descriptor @number in `read`. Returns 1; 0: it is not there; or a negative errno. */
static int load_row(struct kb_kdump *kdump, uint64_t number, struct kb_error *err)
{
	ssize_t got;

	if (number - kdump->first >= kdump->nr_read) {
		kdump->nr_read = 0;
		kdump->first = number / ROWS * ROWS;
		got = kb_memory_pread(kdump->file, kdump->rows + kdump->first * ROW, kdump->read,
				      sizeof(kdump->read), err);
		if (got < 0)
			return (int)got;
		kdump->nr_read = (uint64_t)got / ROW;
	}
	return number - kdump->first < kdump->nr_read;
}

/* Makes the first @bytes of the page of what is packed. Returns as load_page(). */
static int unpack(struct kb_kdump *kdump, uint32_t size, uint32_t flags, uint32_t bytes,
		  struct kb_error *err)
{
	z_stream *stream = &kdump->stream;
	int ret;

	if (flags & ZLIB) {
		inflateReset(stream);
		stream->next_in = kdump->packed;
		stream->avail_in = size;
		stream->next_out = kdump->page;
		stream->avail_out = bytes;
		ret = inflate(stream, Z_SYNC_FLUSH);
		return !stream->avail_out && (bytes < kdump->page_bytes || ret == Z_STREAM_END);
	}
	if (!(flags & ZSTD))
		return kb_memory_refuse(kdump->file, "is compressed with lzo or snappy: write it "
				"again with 'makedumpfile -c', by zlib, or -E, as ELF", err);
	if (!kb_zstd())
		return kb_memory_refuse(kdump->file, "is compressed with zstd: install libzstd1",
					err);
	if (!kdump->zstd)
		kdump->zstd = kb_zstd()->createDCtx();
	if (!kdump->zstd)
		return kb_memory_exhausted(kdump->file, err);
	return kb_zstd()->decompressDCtx(kdump->zstd, kdump->page, kdump->page_bytes,
					 kdump->packed, size) == kdump->page_bytes;
}

/*
 * Has the first @bytes of page @number in `page`. Returns 1; 0 if they are not there or damaged; or
 * a negative errno.
 */
static int load_page(struct kb_kdump *kdump, uint64_t number, uint32_t bytes, struct kb_error *err)
{
	uint32_t bit = number % BITS, size, flags;
	uint64_t index, offset;
	const uint8_t *row;
	ssize_t got;
	int ret;

	if (kdump->at == number || number >= kdump->nr_pages)
		return kdump->at == number;
	ret = load_bits(kdump, number / BITS, err);
	if (ret || !(kdump->bits[bit / 8] >> bit % 8 & 1))
		return ret;
	index = kdump->before[number / BITS] + count_bits(kdump, bit);
	ret = load_row(kdump, index, err);
	if (ret != 1)
		return ret;
	row = kdump->read + (index - kdump->first) * ROW;
	offset = kb_load64(row, kdump->swap);
	size = kb_load32(row + 8, kdump->swap);
	flags = kb_load32(row + 12, kdump->swap) & (ZLIB | LZO | SNAPPY | ZSTD);
	/* Where makedumpfile ended before it had written the page, there is no offset. */
	if (!offset || (flags ? size > kdump->page_bytes : size != kdump->page_bytes))
		return 0;
	kdump->at = NONE;
	size = flags ? size : bytes;
	got = kb_memory_pread(kdump->file, offset, flags ? kdump->packed : kdump->page, size, err);
	if (got < (ssize_t)size)
		return got < 0 ? (int)got : 0;
	ret = flags ? unpack(kdump, size, flags, bytes, err) : 1;
	if (ret == 1 && bytes == kdump->page_bytes)
		kdump->at = number;
	return ret;
}

/* ---- a memory ---- */

int kb_kdump_open(struct kb_kdump **out, const struct kb_memory_file *file, struct kb_error *err)
{
	struct kb_kdump *kdump = calloc(1, sizeof(*kdump));
	int ret;

	if (!kdump)
		return kb_memory_exhausted(file, err);
	kdump->file = file;
	kdump->block = kdump->at = NONE;
	ret = read_headers(kdump, err);
	if (!ret)
		ret = count_pages(kdump, err);
	if (!ret && inflateInit(&kdump->stream) != Z_OK)
		ret = kb_memory_exhausted(file, err);
	if (ret)
		kb_kdump_close(kdump);
	else
		*out = kdump;
	return ret;
}

void kb_kdump_close(struct kb_kdump *kdump)
{
	if (!kdump)
		return;
	if (kdump->zstd)
		kb_zstd()->freeDCtx(kdump->zstd);
	inflateEnd(&kdump->stream);
	free(kdump->before);
	free(kdump);
}

uint64_t kb_kdump_bytes(const struct kb_kdump *kdump)
{
	return kdump->before[kdump->nr_blocks] * kdump->page_bytes;
}

int kb_kdump_find(struct kb_kdump *kdump, const uint64_t *magics, uint64_t *physical,
		  struct kb_error *err)
{
	const size_t bytes = kdump->page_bytes - KB_MEMORY_PAGE + sizeof(*magics);

	for (uint64_t number = *physical / kdump->page_bytes; number < kdump->nr_pages; number++) {
		uint64_t address = number * kdump->page_bytes;
		size_t from = *physical > address ? (size_t)(*physical - address) : 0, found;
		int ret = load_page(kdump, number, (uint32_t)bytes, err);

		if (ret < 0)
			return ret;
		from = (from + KB_MEMORY_PAGE - 1) / KB_MEMORY_PAGE * KB_MEMORY_PAGE;
		found = ret ? kb_memory_page_with(kdump->page, from, bytes, magics) : bytes;
		if (found < bytes) {
			*physical = address + found;
			return 1;
		}
	}
	return 0;
}

int kb_kdump_read(struct kb_kdump *kdump, uint64_t physical, void *to, size_t bytes,
		  struct kb_error *err)
{
	int whole = 1;

	for (size_t done = 0, part; done < bytes; done += part) {
		uint64_t number = (physical + done) / kdump->page_bytes;
		size_t from = (physical + done) % kdump->page_bytes;
		int ret = load_page(kdump, number, kdump->page_bytes, err);

		if (ret < 0)
			return ret;
		whole &= ret;
		part = kdump->page_bytes - from;
		part = part < bytes - done ? part : bytes - done;
		if (ret)
			memcpy((uint8_t *)to + done, kdump->page + from, part);
		else
			memset((uint8_t *)to + done, 0, part);
	}
	return whole;
}
