/* SPDX-License-Identifier: MIT */
/*
 * Names for the stubs with which a program calls shared libraries: "puts@plt", and for
 * functions that are selected at the program's start "*ABS*+0x401000@plt", as in objdump(1). No
 * symbol covers stubs. The code of a stub shows the slot through which it jumps, and the
 * relocation of the slot shows the function. For x86-64, arm64 and riscv64, with the stubs of GNU
 * and LLVM linkers.
 */
#ifndef KB_LIB_SYM_ELF_PLT_H
#define KB_LIB_SYM_ELF_PLT_H

#include <gelf.h>

#include "sym/tables/symtab.h"

/*
 * Add the stubs of @elf. Returns 0 or the errors of kb_symtab_add(). Damaged parts are left
 * out.
 */
int kb_plt_add(struct kb_symtab *symtab, Elf *elf);

#endif
