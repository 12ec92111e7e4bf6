// SPDX-License-Identifier: MIT
/*
 * Fuzz target of lines and inlined functions: whatever DWARF the file has, libdw and what
 * is made of its answers come to an end, and each answer is one.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sym/elf/elf.h"
#include "sym/lines/lines.h"

/*
 * libelf and libdw ask for as much memory as a file says that it needs, and expect NULL if there is
 * not so much, which AddressSanitizer takes for a bug by default. What we ask for ourselves in an
 * ELF file is judged by fuzz_elf.c.
 */
const char *__asan_default_options(void);

const char *__asan_default_options(void)
{
	return "allocator_may_return_null=1";
}

static void ask(struct kb_lines *lines, uint64_t address)
{
	struct kb_lines_frame frames[KB_LINES_DEPTH + 1];
	uint32_t nr = kb_lines_find(lines, address, true, frames), i;

	if (!nr || nr > KB_LINES_DEPTH + 1 || frames[nr - 1].function)
		abort();
	for (i = 0; i < nr; i++)
		if (!frames[i].file || (i + 1 < nr && !strlen(frames[i].function)))
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static int fd = -1;
	struct kb_lines *lines;
	struct kb_elf elf;
	char path[32];
	uint32_t i;

	if (fd < 0)
		fd = memfd_create("lines", 0);
	if (ftruncate(fd, 0) || pwrite(fd, data, size, 0) != (ssize_t)size)
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (kb_lines_open(&lines, path, NULL))
		return 0;
	if (!kb_elf_load(&elf, path, NULL)) {
		for (i = 0; i < elf.symbols.nr_symbols && i < 64; i++)
			ask(lines, elf.symbols.symbols[i].start + i % 8);
		kb_elf_release(&elf);
	}
	ask(lines, 0);
	ask(lines, UINT64_MAX);
	kb_lines_close(lines);
	return 0;
}
