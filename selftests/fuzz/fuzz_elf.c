// SPDX-License-Identifier: MIT
/*
 * Fuzz target of the ELF reader: whatever the file is, symbols and segments come out
 * or an error does, and what came out can be searched. The same for its unwind rows.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sym/elf/elf.h"
#include "sym/elf/unwind.h"

static void search(const struct kb_elf *elf, uint64_t address)
{
	const struct kb_elf_segment *segment = kb_elf_segment_at(elf, address);
	struct kb_symtab_hit hit;

	if (segment && address - segment->offset >= segment->size)
		abort();
	kb_symtab_find(&elf->symbols, address, &hit);
	if (address < hit.low || address > hit.high)
		abort();
	if (hit.symbol && address - hit.symbol->start >= hit.symbol->size)
		abort();
	if (hit.symbol && !strlen(kb_symtab_name(&elf->symbols, hit.symbol)))
		abort();
}

static void unwind(int fd)
{
	struct kb_unwind_rows rows;

	kb_elf_unwind_fd(&rows, fd, -1, "", NULL);
	if (rows.header)
		kb_unwind_rule_at(&rows, rows.header->base);
	kb_unwind_rows_release(&rows);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static int fd = -1;
	struct kb_elf elf;
	char path[32];
	uint32_t i;

	if (fd < 0)
		fd = memfd_create("elf", 0);
	if (ftruncate(fd, 0) || pwrite(fd, data, size, 0) != (ssize_t)size)
		abort();
	unwind(fd);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (kb_elf_read(&elf, path, NULL))
		return 0;
	if (kb_elf_sort(&elf, kb_text("lib")))
		abort();
	for (i = 0; i < elf.symbols.nr_symbols; i++) {
		search(&elf, elf.symbols.symbols[i].start);
		search(&elf, elf.symbols.symbols[i].start + elf.symbols.symbols[i].size);
	}
	search(&elf, 0);
	search(&elf, UINT64_MAX);
	kb_elf_release(&elf);
	return 0;
}
