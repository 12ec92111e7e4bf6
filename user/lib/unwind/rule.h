/* SPDX-License-Identifier: MIT */
/* A rule (rows.h) while it is made: a header and steps, or a reason. */
#ifndef KB_LIB_UNWIND_RULE_H
#define KB_LIB_UNWIND_RULE_H

#include "unwind/rows.h"

struct kb_unwind_rule {
	struct kb_unwind_step steps[KB_UNWIND_MAX_STEPS];
};

void kb_unwind_rule_begin(struct kb_unwind_rule *rule, uint8_t ra, uint8_t flags);
void kb_unwind_rule_none(struct kb_unwind_rule *rule, enum kb_unwind_reason reason);

/*
 * Add a step. If its numbers have no room, the rule becomes none, for that reason. To what is no
 * rule, nothing is added.
 */
void kb_unwind_rule_step(struct kb_unwind_rule *rule, enum kb_unwind_what what, uint64_t target,
			 uint64_t base, int64_t offset);

#endif
