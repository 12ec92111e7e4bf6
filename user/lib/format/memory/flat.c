// SPDX-License-Identifier: MIT
/*
 * The flattened form, which makedumpfile writes into a pipe, and QEMU: pieces of a file, each behind
 * its place there, in the order in which they were made. Bytes of no piece are zeros. Source: struct
 * makedumpfile_data_header of makedumpfile.
 */
#include <stdbool.h>

#include "format/memory/inside.h"
#include "format/wire.h"

#define FIRST		4096U	/* where the first piece begins */
#define HEADER		16U	/* place and length, in big-endian order */

/*
 * While a dump is being written, the bytes before its last piece may not all be there: 24 of a
 * descriptor for each page, which has two bits in the bitmaps that are written first.
 */
#define APART		128U

/* Adds the piece at *@offset and passes it. Returns 1; 0: there is none; or a negative errno. */
static int add_piece(struct kb_memory_ranges *pieces, const struct kb_memory_file *flat,
		     uint64_t *offset, struct kb_error *err)
{
	uint8_t header[HEADER];
	ssize_t got = kb_memory_pread(flat, *offset, header, HEADER, err);
	uint64_t place, bytes;
	int ret;

	if (got < (ssize_t)HEADER)
		return got < 0 ? (int)got : 0;
	place = kb_load64(header, KB_SWAP_BE);
	bytes = kb_load64(header + 8, KB_SWAP_BE);
	/* The last one has all bits set. */
	if (place > INT64_MAX || bytes > INT64_MAX)
		return 0;
	*offset += HEADER;
	ret = kb_memory_add(pieces, flat, place, bytes, *offset, err);
	*offset += bytes;
	return ret ? ret : 1;
}

int kb_memory_flat(struct kb_memory_file *file, const struct kb_memory_file *flat,
		   struct kb_error *err)
{
	struct kb_memory_ranges *pieces = &file->pieces;
	const struct kb_memory_range *last;
	uint64_t offset = FIRST;
	int ret;

	do {
		ret = add_piece(pieces, flat, &offset, err);
	} while (ret == 1);
	if (!ret)
		ret = kb_memory_order(pieces, flat, err);
	if (ret)
		return ret;
	last = pieces->nr ? &pieces->rows[pieces->nr - 1] : NULL;
	file->flat = flat;
	file->size = last ? last->physical + last->bytes : 0;
	if (file->size / APART > pieces->bytes)
		return kb_memory_damaged(file, "its pieces are too far apart", err);
	return 0;
}
