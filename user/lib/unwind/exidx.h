/* SPDX-License-Identifier: MIT */
/*
 * The tables of 32-bit Arm: .ARM.exidx has two words for each function, .ARM.extab the
 * instructions that have no room there. Source: "Exception Handling ABI for the Arm
 * Architecture". A function has one rule, which holds where it calls others. In its first and
 * last instructions the rule is wrong.
 */
#ifndef KB_LIB_UNWIND_EXIDX_H
#define KB_LIB_UNWIND_EXIDX_H

#include "unwind/frames.h"
#include "unwind/rule.h"

struct kb_exidx {
	struct kb_unwind_section index, table;
	bool swap;
};

#define KB_EXIDX_ENTRY	8U	/* bytes */

/* Where the function of the entry at @at begins. */
uint64_t kb_exidx_start(const struct kb_exidx *exidx, size_t at);

/* Make the rule of the entry at @at, which is in the section. */
void kb_exidx_rule(const struct kb_exidx *exidx, size_t at, struct kb_unwind_rule *rule);

#endif
