/* SPDX-License-Identifier: MIT */
/*
 * Names for the stubs through which a program calls shared libraries: "puts@plt", and
 * functions that are chosen at its start: "*ABS*+0x401000@plt", as objdump(1) has them. No
 * symbol covers them; what a stub does says which slot it jumps through, and the
 * relocation of that slot says whose it is. Of x86-64 and arm64, as GNU and LLVM link.
 */
#ifndef KBARMAN_SYM_PLT_H
#define KBARMAN_SYM_PLT_H

#include <gelf.h>

#include "sym/symtab.h"

/* Add the stubs of @elf. 0 or as kb_symtab_add(); damage is left out. */
int kb_plt_add(struct kb_symtab *symtab, Elf *elf);

#endif
