/* SPDX-License-Identifier: MIT */
/*
 * Sections of ELF files that zstd compressed. libelf reads them from version 0.189 on, and only if
 * it was built so; libzstd itself is on most machines.
 */
#ifndef KB_LIB_SYM_ELF_ZSTD_SECTIONS_H
#define KB_LIB_SYM_ELF_ZSTD_SECTIONS_H

#include <gelf.h>
#include <stddef.h>
#include <stdint.h>

struct kb_zstd_sections {
	void **blocks;		/* memory of the sections */
	size_t nr, max;
	uint64_t size;		/* of all */
};

/*
 * Decompress these sections of @elf, which is not written afterwards. They need the memory in
 * @sections until elf_end(). Returns 0, -ENOMEM, -EFBIG, -EBADMSG (damage), or -ENOPKG: there are
 * some, and no libzstd.
 */
int kb_zstd_sections_unpack(struct kb_zstd_sections *sections, Elf *elf);

/* The same for one section, if zstd compressed it. @shdr is its header, which changes. */
int kb_zstd_section_unpack(struct kb_zstd_sections *sections, Elf *elf, Elf_Scn *scn, GElf_Shdr *shdr);

void kb_zstd_sections_release(struct kb_zstd_sections *sections);

#endif
