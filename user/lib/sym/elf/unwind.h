/* SPDX-License-Identifier: MIT */
/*
 * Unwind rows of ELF files. The file may be hostile: see unwind/compile.h. Nothing here knows of
 * another process that decodes: call it in that process, and send the block of the rows.
 */
#ifndef KB_LIB_SYM_ELF_UNWIND_H
#define KB_LIB_SYM_ELF_UNWIND_H

#include "sym/tables/elf_data.h"

/*
 * Make the rows of the file that is open as @fd; @path is its name in messages. @debug_fd: its
 * debug file, or -1. Returns 0, or what kb_elf_read() returns, -ENOTSUP: of a machine that is not
 * known; -EBADMSG: damaged. If @rows->header is not NULL then, @rows has what could be read.
 */
int kb_elf_unwind_fd(struct kb_unwind_rows *rows, int fd, int debug_fd, const char *path,
		     struct kb_error *err);

/*
 * Read @elf as kb_elf_identify_fd(), with the unwind rows of the file. Rows of a file that is
 * damaged are those that could be read. -EFBIG: there are more than KB_UNWIND_SIZE_MAX.
 */
int kb_elf_unwind_read_fd(struct kb_elf *elf, int fd, const char *path, struct kb_error *err);

/* The rows of a file in memory, such as a vdso. */
int kb_elf_unwind_memory(struct kb_unwind_rows *rows, const void *data, size_t size,
			 struct kb_error *err);

#endif
