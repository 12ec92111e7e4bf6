/* SPDX-License-Identifier: MIT */
/*
 * What an ELF file says about its addresses: symbols of .symtab and .dynsym in one
 * table, and the segments that relate file offsets to virtual addresses. Reads any
 * class, byte order and machine. The file may be hostile: what is out of bounds is
 * left out or refused, memory is bounded by the size of the file.
 */
#ifndef KBARMAN_SYM_ELF_H
#define KBARMAN_SYM_ELF_H

#include <stdbool.h>
#include <stdint.h>

#include <kbarman/error.h>

#include "sym/symtab.h"

struct kb_elf_segment {
	uint64_t offset, vaddr, size;	/* bytes in the file */
	bool executable;
};

struct kb_elf {
	struct kb_symtab symbols;	/* by virtual address; sorted */
	struct kb_elf_segment *segments;
	uint32_t nr_segments;
};

/*
 * Read @path. -ENOEXEC: not an ELF program or library; -EBADMSG: a damaged one;
 * errors of open(2) and memory as they are. A file without symbols is no error.
 */
int kb_elf_load(struct kb_elf *elf, const char *path, struct kb_error *err);
void kb_elf_release(struct kb_elf *elf);

/*
 * The segment that shows the byte at @offset of the file to programs, executable
 * ones first; NULL if none does.
 */
const struct kb_elf_segment *kb_elf_segment_at(const struct kb_elf *elf, uint64_t offset);

#endif
