/* SPDX-License-Identifier: MIT */
/* Programs that are installed together. */
#ifndef KB_LIB_BASE_PROGRAM_H
#define KB_LIB_BASE_PROGRAM_H

/* Become the program @name, which is beside this one or in $PATH. Returns only if it can't, with errno. */
void kb_program_become(const char *name, char *const *argv);

#endif
