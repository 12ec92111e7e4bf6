// SPDX-License-Identifier: MIT
/* Steps for registers come in the order of their numbers, so equal states make equal rules. */
#include "unwind/cfi_rule.h"
#include "unwind/expression.h"
#include "unwind/signal_frame.h"

static struct kb_bytes code_of(const struct kb_cfi *cfi, const struct kb_cfi_rule *rule)
{
	return (struct kb_bytes) {
		.data = cfi->frames->section.data, .at = rule->number,
		.end = (size_t)rule->number + rule->length, .swap = cfi->frames->swap,
	};
}

static void add_cfa(struct kb_unwind_rule *rule, const struct kb_cfi *cfi)
{
	const struct kb_cfi_rule *cfa = &cfi->now.cfa;

	if (cfa->kind == KB_CFI_REGISTER)
		kb_unwind_rule_step(rule, KB_UNWIND_CFA_BASE, 0, cfa->base, cfa->number);
	else if (cfa->kind == KB_CFI_EXPRESSION)
		kb_unwind_expression_cfa(rule, code_of(cfi, cfa), cfi->cie->ra);
	else
		kb_unwind_rule_none(rule, KB_UNWIND_DAMAGED);
}

static void add_register(struct kb_unwind_rule *rule, const struct kb_cfi *cfi, unsigned int reg)
{
	const struct kb_cfi_rule *from = &cfi->now.regs[reg];

	switch (from->kind) {
	case KB_CFI_UNDEFINED:
		kb_unwind_rule_step(rule, KB_UNWIND_UNDEFINED, reg, 0, 0);
		break;
	case KB_CFI_OFFSET:
		kb_unwind_rule_step(rule, KB_UNWIND_AT, reg, 0, from->number);
		break;
	case KB_CFI_VALUE:
		kb_unwind_rule_step(rule, KB_UNWIND_VALUE, reg, 0, from->number);
		break;
	case KB_CFI_REGISTER:
		if (from->base < cfi->frames->machine->nr)
			kb_unwind_rule_step(rule, KB_UNWIND_VALUE_BASE, reg, from->base, 0);
		else
			kb_unwind_rule_step(rule, KB_UNWIND_LOST, reg, 0, 0);
		break;
	default:
		kb_unwind_expression_register(rule, code_of(cfi, from), reg,
					      from->kind == KB_CFI_EXPRESSION);
	}
}

/* A caller whose address is lost is no rule. */
static void check_ra(struct kb_unwind_rule *rule)
{
	const struct kb_unwind_step *header = &rule->steps[0];

	for (unsigned int i = 1; i <= header->count; i++)
		if (rule->steps[i].what == KB_UNWIND_LOST &&
		    rule->steps[i].target == header->target) {
			kb_unwind_rule_none(rule, KB_UNWIND_EXPRESSION);
			return;
		}
}

void kb_unwind_rule_of(struct kb_unwind_rule *rule, const struct kb_cfi *cfi)
{
	const struct kb_cie *cie = cfi->cie;
	uint32_t left = cfi->now.set;

	if (cie->signal && kb_unwind_signal_frame(rule, cfi->frames->machine))
		return;
	if (cie->ra >= cfi->frames->machine->nr) {
		kb_unwind_rule_none(rule, KB_UNWIND_WIDE);
		return;
	}
	kb_unwind_rule_begin(rule, cie->ra, (cie->signal ? KB_UNWIND_SIGNAL : 0) |
			     (cfi->now.is_signed ? KB_UNWIND_SIGNED : 0));
	add_cfa(rule, cfi);
	for (; left; left &= left - 1)
		add_register(rule, cfi, __builtin_ctz(left));
	check_ra(rule);
}
