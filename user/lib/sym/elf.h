/* SPDX-License-Identifier: MIT */
/*
 * What an ELF file says about its addresses: the symbols of .symtab and .dynsym in one table,
 * and the segments that relate file offsets to virtual addresses. Reads any class, byte order
 * and machine. The file may be hostile: what is out of bounds is left out or refused, and
 * memory is limited by the size of the file.
 */
#ifndef KBARMAN_SYM_ELF_H
#define KBARMAN_SYM_ELF_H

#include <stdbool.h>
#include <stdint.h>

#include <kbarman/error.h>

#include "sym/symtab.h"

struct kb_elf_segment {
	uint64_t offset, vaddr, size;	/* size: bytes in the file */
	bool executable;
};

#define KB_ELF_MAX_SEGMENTS	64U	/* loadable ones; programs have two to five */
#define KB_BUILD_ID_MAX	64

/* The linker's id of a file; length 0: none. */
struct kb_build_id {
	uint8_t bytes[KB_BUILD_ID_MAX];
	uint32_t length;
};

struct kb_elf {
	struct kb_symtab symbols;	/* addresses are virtual */
	uint32_t nr_stubs;		/* upper limit of the number of NAME@plt symbols */
	struct kb_elf_segment *segments;
	uint32_t nr_segments;
	bool has_symtab;		/* .symtab, not just .dynsym */
	bool has_dwarf;			/* .debug_info: lines and inlined functions */
	struct kb_build_id build_id;
	uint64_t stext;			/* of a kernel: address of _stext; 0: not a kernel */
	char debuglink[256];		/* .gnu_debuglink: name of a file, "" = none, */
	uint32_t debuglink_crc;		/* and the CRC-32 of that file */
};

/*
 * Read @path. -ENOEXEC: not an ELF program or library; -EBADMSG: a damaged one; other errors
 * are those of open(2) and of memory. A file without symbols is not an error. Call
 * kb_symtab_sort() before searching the symbols.
 */
int kb_elf_read(struct kb_elf *elf, const char *path, struct kb_error *err);

/* The same for the file that is open as @fd, in this process; @path is its name in messages. */
int kb_elf_read_fd(struct kb_elf *elf, int fd, const char *path, struct kb_error *err);

/* Read as kb_elf_read() and sort the symbols. */
int kb_elf_load(struct kb_elf *elf, const char *path, struct kb_error *err);

/*
 * Add the symbols of the debug file at @path of @elf, before symbols are sorted. The file must
 * have @elf's build-id, or, if @elf has none, the CRC in @elf. -ESTALE: it is another file;
 * other errors are those of kb_elf_read().
 */
int kb_elf_add_debug(struct kb_elf *elf, const char *path);
int kb_elf_add_debug_fd(struct kb_elf *elf, int fd);	/* in this process */

/*
 * Whether @path is @elf's debug file by the same rule and has .debug_info. Returns 0, -ESTALE
 * or -ENODATA.
 */
int kb_elf_check_dwarf(const struct kb_elf *elf, const char *path);

void kb_elf_release(struct kb_elf *elf);

/*
 * The segment that maps the byte at @offset of the file, executable ones first; NULL: none
 * does.
 */
const struct kb_elf_segment *kb_elf_segment_at(const struct kb_elf *elf, uint64_t offset);

/* Whether a segment maps a part of the page of the file that begins at @offset. */
#define KB_ELF_PAGE	4096U	/* the smallest page size */
bool kb_elf_maps_page(const struct kb_elf *elf, uint64_t offset);

#endif
