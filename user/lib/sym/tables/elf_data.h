/* SPDX-License-Identifier: MIT */
/*
 * What an ELF file says about its addresses: the symbols of .symtab and .dynsym in one table,
 * and the segments that relate file offsets to virtual addresses, or the unwind rows instead of the
 * symbols. It comes from the file (elf.h), from another process that read the file (question.h), or
 * from a bundle.
 */
#ifndef KB_LIB_SYM_TABLES_ELF_DATA_H
#define KB_LIB_SYM_TABLES_ELF_DATA_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <kbarman/text.h>

#include "sym/tables/jit.h"
#include "sym/tables/symtab.h"
#include "unwind/rows.h"

struct kb_elf_segment {
	uint64_t offset, vaddr, size;	/* size: bytes in the file */
	bool executable;
};

#define KB_ELF_MAX_SEGMENTS	64U	/* loadable ones; programs have two to five */
#define KB_BUILD_ID_MAX	64
#define KB_BUILD_ID_TEXT	(2 * KB_BUILD_ID_MAX + 1)	/* bytes of its digits, with the NUL */
#define KB_UNWIND_SIZE_MAX	(256U << 20)	/* bytes of unwind rows; libLLVM has 6 MiB */

/* The linker's id of a file; length 0: none. */
struct kb_build_id {
	uint8_t bytes[KB_BUILD_ID_MAX];
	uint32_t length;
};

/* Writes @id in hexadecimal digits; NULL: none. Returns how many digits there are. */
static inline size_t kb_build_id_text(char text[KB_BUILD_ID_TEXT], const struct kb_build_id *id)
{
	uint32_t length = id ? id->length : 0;

	for (uint32_t i = 0; i < length; i++)
		snprintf(text + 2 * i, 3, "%02x", id->bytes[i]);
	text[2 * length] = '\0';
	return 2 * (size_t)length;
}

struct kb_elf {
	struct kb_symtab symbols;	/* addresses are virtual */
	struct kb_symtab functions;	/* those that are known without symbols (elf/functions.h) */
	uint32_t nr_stubs;		/* upper limit of the number of symbols that stripped files
					 * have as well: NAME@plt, and functions that were known */
	struct kb_elf_segment *segments;
	uint32_t nr_segments;
	bool has_symtab;		/* .symtab, not just .dynsym */
	bool has_dwarf;			/* .debug_info: lines and inlined functions */
	struct kb_build_id build_id;
	uint64_t stext;			/* of a kernel: address of _stext; 0: not a kernel */
	char debuglink[256];		/* .gnu_debuglink: name of a file, "" = none, */
	uint32_t debuglink_crc;		/* and the CRC-32 of that file */
	struct kb_unwind_rows unwind;	/* no header: nobody asked for them */
	struct kb_jit jit;		/* of a jitdump, whose codes are the symbols, unsorted */
};

void kb_elf_release(struct kb_elf *elf);

/*
 * Sort the symbols, and let functions count where there is none; those without a name get one
 * with @file (kb_symtab_fill()). Returns 0 or -ENOMEM.
 */
int kb_elf_sort(struct kb_elf *elf, struct kb_text file);

/*
 * The segment that maps the byte at @offset of the file, executable ones first; NULL: none
 * does.
 */
const struct kb_elf_segment *kb_elf_segment_at(const struct kb_elf *elf, uint64_t offset);

/* The same among @nr segments. */
const struct kb_elf_segment *kb_elf_segment_among(const struct kb_elf_segment *segments, uint32_t nr,
						  uint64_t offset);

/* Whether a segment maps a part of the page of the file that begins at @offset. */
#define KB_ELF_PAGE	4096U	/* the smallest page size */
bool kb_elf_maps_page(const struct kb_elf *elf, uint64_t offset);

#endif
