/* SPDX-License-Identifier: MIT */
/* A symbol table that another one fills up where it has nothing, and the names made for it. */
#ifndef KB_LIB_SYM_TABLES_SYMTAB_FILL_H
#define KB_LIB_SYM_TABLES_SYMTAB_FILL_H

#include <stdbool.h>

#include <kbarman/text.h>

#include "sym/tables/symtab.h"

/*
 * Let the symbols of @more count where @symtab has none; both are sorted. Those that count are
 * added after the last symbol of @symtab. One with an empty name is called FILE+0xSTART, with
 * @file. Returns 0, -ENOMEM or -EFBIG.
 */
int kb_symtab_fill(struct kb_symtab *symtab, const struct kb_symtab *more, struct kb_text file);

/* Whether kb_symtab_fill() makes @name for a symbol at @start. */
bool kb_symtab_is_nameless(const char *name, uint64_t start, struct kb_text file);

#endif
