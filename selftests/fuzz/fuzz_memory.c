// SPDX-License-Identifier: MIT
/*
 * Fuzz target of the readers of memory: what is found is where it was looked for and can be read, and
 * has what was asked for. The first byte says whether the rest has a form or is raw.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "format/memory/memory.h"
#include "format/wire.h"

#define MAGIC	0x0102030405060708U
#define MOST	64U	/* pages that are read */

static void search(struct kb_memory *memory)
{
	static const uint64_t magics[KB_MEMORY_MAGICS] = { MAGIC, MAGIC };
	static uint8_t page[3 * KB_MEMORY_PAGE];
	uint64_t from = 0, at = 0;
	struct kb_error err;

	for (unsigned int i = 0; i < MOST; i++) {
		if (kb_memory_find(memory, magics, &at, &err) != 1)
			break;
		if (at < from || at % KB_MEMORY_PAGE ||
		    kb_memory_read(memory, at, page, sizeof(uint64_t), &err) < 0)
			abort();
		/* A page may be damaged behind what is compared. */
		if (kb_memory_read(memory, at, page, KB_MEMORY_PAGE, &err) == 1 &&
		    kb_load64(page, false) != MAGIC && kb_load64(page, true) != MAGIC)
			abort();
		if (at > UINT64_MAX - sizeof(page))
			break;
		kb_memory_read(memory, at + 77, page, sizeof(page) - 77, &err);
		from = at += KB_MEMORY_PAGE;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct kb_memory *memory;
	struct kb_error err;
	char path[64];
	int fd = memfd_create("memory", MFD_CLOEXEC);

	if (fd < 0)
		abort();
	if (size && write(fd, data + 1, size - 1) == (ssize_t)size - 1) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		kb_memory_is(path);
		if (!kb_memory_open(&memory, path, data[0] & 1 ? (uint64_t)data[0] << 56 :
				    KB_MEMORY_NO_BASE, &err)) {
			search(memory);
			kb_memory_close(memory);
		}
	}
	close(fd);
	return 0;
}
