/* SPDX-License-Identifier: MIT */
/*
 * DWARF expressions, as far as the steps of a rule can say the same: those that compilers,
 * linkers and the authors of assembly use in call frame instructions.
 */
#ifndef KB_LIB_UNWIND_EXPRESSION_H
#define KB_LIB_UNWIND_EXPRESSION_H

#include "unwind/bytes.h"
#include "unwind/rule.h"

/* Add the steps to the CFA. @ra: the number under which the expression has the PC. */
void kb_unwind_expression_cfa(struct kb_unwind_rule *rule, struct kb_bytes code, uint64_t ra);

/* Add the step to @reg, which is in memory at the result, or the result itself. */
void kb_unwind_expression_register(struct kb_unwind_rule *rule, struct kb_bytes code,
				   unsigned int reg, bool in_memory);

#endif
