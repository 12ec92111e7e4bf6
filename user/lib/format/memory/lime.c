// SPDX-License-Identifier: MIT
/*
 * LiME: ranges of memory, each behind a header. Nothing says where bytes were that are behind
 * something else. Source: doc/README.md of LiME.
 */
#include <string.h>

#include "format/memory/inside.h"
#include "format/wire.h"

#define HEADER		32U	/* magic, version, first and last address, 8 bytes */

int kb_memory_lime(struct kb_memory_ranges *ranges, const struct kb_memory_file *file,
		   struct kb_error *err)
{
	uint64_t offset = 0, bytes = 0;
	int ret = 0;

	while (!ret && bytes < file->size) {
		uint8_t header[HEADER] = { 0 };
		ssize_t got = kb_memory_pread(file, offset, header, HEADER, err);
		uint64_t first = kb_load64(header + 8, KB_SWAP_LE);
		uint64_t last = kb_load64(header + 16, KB_SWAP_LE);

		if (got < 0)
			return (int)got;
		if (memcmp(header, KB_MEMORY_LIME, 4) != 0 ||
		    kb_load32(header + 4, KB_SWAP_LE) != 1 || first > last)
			return offset ? 0 :
			       kb_memory_damaged(file, "it has no header of LiME's version 1", err);
		offset += HEADER;
		bytes = last - first;
		bytes += bytes < UINT64_MAX;
		ret = kb_memory_add(ranges, file, first, bytes, offset, err);
		offset += bytes;
	}
	return ret;
}
