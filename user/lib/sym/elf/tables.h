/* SPDX-License-Identifier: MIT */
/* Finds what the folder unwind reads in an ELF file, which may be hostile. */
#ifndef KB_LIB_SYM_ELF_TABLES_H
#define KB_LIB_SYM_ELF_TABLES_H

#include <gelf.h>

#include "sym/elf/zstd_sections.h"
#include "unwind/functions.h"

/* Sections belong to the ELF file that they were taken from. */
struct kb_elf_tables {
	struct kb_unwind_sections sections;
	Elf_Scn *minidebug;	/* .gnu_debugdata, or NULL */
	bool is_vdso;		/* set by the caller */
	struct kb_zstd_sections unpacked;	/* released by the caller, behind elf_end() */
};

/* Returns 0 or -ENOEXEC: @elf, which may be NULL, is not an ELF file or has no code. */
int kb_elf_tables_take(struct kb_elf_tables *tables, Elf *elf, struct kb_error *err);

/* Take .debug_frame of @debug, too, if it is of the same machine. */
void kb_elf_tables_add(struct kb_elf_tables *tables, Elf *debug);

#endif
