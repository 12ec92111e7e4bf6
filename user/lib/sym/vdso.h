/* SPDX-License-Identifier: MIT */
#ifndef KBARMAN_SYM_VDSO_H
#define KBARMAN_SYM_VDSO_H

#include "sym/elf.h"

/*
 * The symbols of this process's own vdso, which is every process's on this kernel.
 * 0 or a negative errno. Not sorted: see kb_elf_read().
 */
int kb_vdso_read(struct kb_elf *elf);

#endif
