/* SPDX-License-Identifier: MIT */
/*
 * Makes unwind rows (rows.h) of the sections of a file (functions.h). What one function has wrong
 * costs only the rows of that function.
 */
#ifndef KB_LIB_UNWIND_COMPILE_H
#define KB_LIB_UNWIND_COMPILE_H

#include "unwind/functions.h"
#include "unwind/rows.h"

/*
 * Make @rows. Returns 0; what kb_unwind_functions_find() returns; or -EBADMSG: a section is
 * damaged. Then @rows has everything that could be read, and @err says where the first damage is,
 * as an offset in the section.
 */
int kb_unwind_compile(struct kb_unwind_rows *rows, const struct kb_unwind_sections *sections,
		      struct kb_error *err);

#endif
