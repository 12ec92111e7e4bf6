/* SPDX-License-Identifier: MIT */
#ifndef KB_LIB_SYM_IMAGE_VDSO_H
#define KB_LIB_SYM_IMAGE_VDSO_H

#include "sym/tables/elf_data.h"

/*
 * Read the symbols of this process's vdso; all processes on this kernel have the same one.
 * Returns 0 or a negative errno. The symbols are not sorted; see kb_elf_read().
 */
int kb_vdso_read(struct kb_elf *elf);

/* The same with segments and unwind rows, and without symbols. */
int kb_vdso_unwind(struct kb_elf *elf, struct kb_error *err);

#endif
