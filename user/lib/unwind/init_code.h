/* SPDX-License-Identifier: MIT */
/*
 * _init and _fini: the C library has their beginning and their end in crti.o and crtn.o, assembly code
 * without a table, and what is between calls constructors. On x86 code that glibc and musl have there
 * is known by its instructions; on other machines it has a frame pointer, or is not used.
 */
#ifndef KB_LIB_UNWIND_INIT_CODE_H
#define KB_LIB_UNWIND_INIT_CODE_H

#include "unwind/frames.h"
#include "unwind/rule.h"

#define KB_UNWIND_INIT_ROWS	9U	/* at most, of a section */

struct kb_unwind_init_row {
	size_t at;		/* byte of the section from which it holds */
	uint8_t depth;		/* bytes below the caller's address */
	bool has_rbx;		/* the register, or ebx, is the first thing there */
};

/* The rows of @code, which is .init or .fini. Returns their number; 0: the code has another form. */
unsigned int kb_unwind_init_rows(const struct kb_unwind_section *code,
				 const struct kb_unwind_machine *machine,
				 struct kb_unwind_init_row rows[KB_UNWIND_INIT_ROWS]);

/* Make the rule of a row. */
void kb_unwind_init_rule(struct kb_unwind_rule *rule, const struct kb_unwind_machine *machine,
			 const struct kb_unwind_init_row *row);

#endif
