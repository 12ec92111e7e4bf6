// SPDX-License-Identifier: MIT
/* See rule.h. Bytes that a step does not use are 0, so equal rules have equal bytes. */
#include "unwind/rule.h"

void kb_unwind_rule_begin(struct kb_unwind_rule *rule, uint8_t ra, uint8_t flags)
{
	rule->steps[0] = (struct kb_unwind_step) {
		.what = KB_UNWIND_RULE, .target = ra, .base = flags,
	};
}

void kb_unwind_rule_none(struct kb_unwind_rule *rule, enum kb_unwind_reason reason)
{
	rule->steps[0] = (struct kb_unwind_step) { .what = KB_UNWIND_NO_RULE, .offset = reason };
}

void kb_unwind_rule_step(struct kb_unwind_rule *rule, enum kb_unwind_what what, uint64_t target,
			 uint64_t base, int64_t offset)
{
	struct kb_unwind_step *header = &rule->steps[0];

	if (header->what != KB_UNWIND_RULE)
		return;
	if (target >= KB_UNWIND_REGISTERS || base >= KB_UNWIND_REGISTERS ||
	    offset != (int32_t)offset || header->count + 1U == KB_UNWIND_MAX_STEPS) {
		kb_unwind_rule_none(rule, KB_UNWIND_WIDE);
		return;
	}
	rule->steps[++header->count] = (struct kb_unwind_step) {
		.what = what, .target = target, .base = base, .offset = (int32_t)offset,
	};
}
