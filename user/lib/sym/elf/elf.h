/* SPDX-License-Identifier: MIT */
/*
 * sym/elf/: ELF files: symbols, stubs, functions of stripped files, the tables that unwinding
 * reads, compressed sections. Every file may be hostile.
 *
 * Reads ELF files of any class, byte order and machine. The file may be hostile: what is out of
 * bounds is left out or refused, and memory is limited by the size of the file.
 */
#ifndef KB_LIB_SYM_ELF_ELF_H
#define KB_LIB_SYM_ELF_ELF_H

#include <kbarman/error.h>

#include "sym/tables/elf_data.h"

/*
 * Read @path. -ENOEXEC: not an ELF program or library; -EBADMSG: a damaged one; other errors
 * are those of open(2) and of memory. A file without symbols is not an error. Call
 * kb_symtab_sort() before searching the symbols.
 */
int kb_elf_read(struct kb_elf *elf, const char *path, struct kb_error *err);

/* The same for the file that is open as @fd, in this process; @path is its name in messages. */
int kb_elf_read_fd(struct kb_elf *elf, int fd, const char *path, struct kb_error *err);

/* The same without symbols: segments, build-id, debug link. Costs little, whatever the file. */
int kb_elf_identify_fd(struct kb_elf *elf, int fd, const char *path, struct kb_error *err);

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

#endif
