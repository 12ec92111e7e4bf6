/* SPDX-License-Identifier: MIT */
/* The state that call frame instructions have made, as a rule. */
#ifndef KB_LIB_UNWIND_CFI_RULE_H
#define KB_LIB_UNWIND_CFI_RULE_H

#include "unwind/cfi.h"
#include "unwind/rule.h"

void kb_unwind_rule_of(struct kb_unwind_rule *rule, const struct kb_cfi *cfi);

#endif
