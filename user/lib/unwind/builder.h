/* SPDX-License-Identifier: MIT */
/* Makes the block of rows.h out of rows that come in the order of their addresses. */
#ifndef KB_LIB_UNWIND_BUILDER_H
#define KB_LIB_UNWIND_BUILDER_H

#include "unwind/rows.h"

struct kb_unwind_builder {
	const struct kb_unwind_machine *machine;
	uint64_t base;
	uint32_t *starts;
	uint16_t *rule_of;
	uint32_t nr_rows, max_starts, max_rule_of;
	struct kb_unwind_step *steps;
	uint32_t nr_steps, max_steps;
	uint32_t *rules;	/* number of the header in steps */
	uint32_t nr_rules, max_rules;
	uint16_t *slots;	/* of the hash table of rules: number of a rule, 0 = free */
	bool no_memory;		/* nothing was added since */
};

/* Addresses are at most 4 GiB after @base. False: no memory; then there is nothing to release. */
bool kb_unwind_builder_init(struct kb_unwind_builder *builder,
			    const struct kb_unwind_machine *machine, uint64_t base);
void kb_unwind_builder_release(struct kb_unwind_builder *builder);

/*
 * The number of the rule with the header @rule, which its steps follow. Equal rules have one
 * number. The number of a reason is the rule that has this reason.
 */
uint16_t kb_unwind_builder_rule(struct kb_unwind_builder *builder,
				const struct kb_unwind_step *rule);

/*
 * From @address on, @rule holds; it is not below that of the row before. @function: a function
 * begins there.
 */
void kb_unwind_builder_row(struct kb_unwind_builder *builder, uint64_t address, uint16_t rule,
			   bool function);

/* Make the block. -ENOMEM, also if anything before found no memory. */
int kb_unwind_builder_finish(const struct kb_unwind_builder *builder,
			     struct kb_unwind_rows *rows);

#endif
