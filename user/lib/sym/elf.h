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

#define KB_ELF_MAX_SEGMENTS	64U	/* to load; programs have two to five */
#define KB_BUILD_ID_MAX	64

/* What the linker says a file is; length 0: nothing. */
struct kb_build_id {
	uint8_t bytes[KB_BUILD_ID_MAX];
	uint32_t length;
};

struct kb_elf {
	struct kb_symtab symbols;	/* by virtual address */
	uint32_t nr_stubs;		/* of them, at most, those that are NAME@plt */
	struct kb_elf_segment *segments;
	uint32_t nr_segments;
	bool has_symtab;		/* .symtab, not just .dynsym */
	bool has_dwarf;			/* .debug_info: lines and inlined functions */
	struct kb_build_id build_id;
	uint64_t stext;			/* of a kernel: where _stext is; 0: it is none */
	char debuglink[256];		/* .gnu_debuglink: a file's name, "" = none, ... */
	uint32_t debuglink_crc;		/* ... and the CRC-32 of it */
};

/*
 * Read @path. -ENOEXEC: not an ELF program or library; -EBADMSG: a damaged one;
 * errors of open(2) and memory as they are. A file without symbols is no error.
 * The symbols have to be sorted before they are searched: kb_symtab_sort().
 */
int kb_elf_read(struct kb_elf *elf, const char *path, struct kb_error *err);

/* The same of the file that is open as @fd, in this process; @path is what messages call it. */
int kb_elf_read_fd(struct kb_elf *elf, int fd, const char *path, struct kb_error *err);

/* As kb_elf_read(), and sort. */
int kb_elf_load(struct kb_elf *elf, const char *path, struct kb_error *err);

/*
 * Add the symbols of @elf's debug file at @path; only if it is the right one: it has
 * @elf's build-id, or if that is not known the CRC that @elf asks for. -ESTALE: it
 * is not; else as kb_elf_read(). Before the symbols are sorted.
 */
int kb_elf_add_debug(struct kb_elf *elf, const char *path);
int kb_elf_add_debug_fd(struct kb_elf *elf, int fd);	/* in this process */

/* Is @path @elf's debug file by the same rule, and has it .debug_info? 0, -ESTALE, -ENODATA. */
int kb_elf_check_dwarf(const struct kb_elf *elf, const char *path);

void kb_elf_release(struct kb_elf *elf);

/*
 * The segment that shows the byte at @offset of the file to programs, executable
 * ones first; NULL if none does.
 */
const struct kb_elf_segment *kb_elf_segment_at(const struct kb_elf *elf, uint64_t offset);

/* Does any of it stand in the page of the file that begins at @offset? */
#define KB_ELF_PAGE	4096U	/* as small as any */
bool kb_elf_maps_page(const struct kb_elf *elf, uint64_t offset);

#endif
