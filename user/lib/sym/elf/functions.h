/* SPDX-License-Identifier: MIT */
/*
 * The functions of an ELF file that needs no symbols for them: those that its unwind tables
 * describe, _start, _init and _fini, and what is between them, where some linkers and authors of
 * assembly leave functions without a description. All code of the file belongs to one of them.
 */
#ifndef KB_LIB_SYM_ELF_FUNCTIONS_H
#define KB_LIB_SYM_ELF_FUNCTIONS_H

#include <gelf.h>

#include "sym/tables/symtab.h"

/*
 * Add the functions of @elf, which may be damaged, to @functions. One without a name has the name
 * "" and the rank KB_RANK_NAMELESS. Returns 0, -ENOMEM or -EFBIG.
 */
int kb_elf_functions_add(struct kb_symtab *functions, Elf *elf);

#endif
