// SPDX-License-Identifier: MIT
/* Recognizes forms of expressions; it has no stack and can't loop. */
#include "unwind/expression.h"

enum operation {
	DEREF = 0x06, AND = 0x1a, MUL = 0x1e, PLUS = 0x22, PLUS_UCONST = 0x23, SHL = 0x24,
	GE = 0x2a, LIT0 = 0x30, LIT31 = 0x4f, BREG0 = 0x70, BREG31 = 0x8f,
};

/* A register and an offset. False: another operation. */
static bool read_base(struct kb_bytes *code, uint64_t *reg, int64_t *offset)
{
	uint8_t what = kb_bytes_8(code);

	*reg = what - BREG0;
	*offset = kb_bytes_signed(code);
	return !code->bad && what >= BREG0 && what <= BREG31;
}

static bool read_literal(struct kb_bytes *code, uint8_t *value)
{
	uint8_t what = kb_bytes_8(code);

	*value = what - LIT0;
	return !code->bad && what >= LIT0 && what <= LIT31;
}

static bool next_is(struct kb_bytes *code, enum operation what)
{
	return kb_bytes_8(code) == what && !code->bad;
}

static struct kb_unwind_step *last_step(struct kb_unwind_rule *rule)
{
	return &rule->steps[rule->steps[0].count];
}

static bool add_constant(struct kb_unwind_rule *rule, uint64_t value)
{
	struct kb_unwind_step *last = last_step(rule);

	if (last->what != KB_UNWIND_CFA_BASE && last->what != KB_UNWIND_CFA_LOAD)
		return false;
	if (value > INT32_MAX || last->offset > INT32_MAX - (int32_t)value)
		return false;
	last->offset += (int32_t)value;
	return true;
}

/* "((pc & mask) >= threshold) << shift": after its push, a PLT entry has one word more. */
static bool add_plt(struct kb_unwind_rule *rule, struct kb_bytes *code)
{
	uint8_t mask, threshold, shift;

	if (!read_literal(code, &mask) || !next_is(code, AND) ||
	    !read_literal(code, &threshold) || !next_is(code, GE) ||
	    !read_literal(code, &shift) || !next_is(code, SHL) || !next_is(code, PLUS) ||
	    shift > 7)
		return false;
	kb_unwind_rule_step(rule, KB_UNWIND_CFA_PLT, threshold, mask, 0);
	last_step(rule)->count = shift;
	return true;
}

/* "register * scale" */
static bool add_index(struct kb_unwind_rule *rule, struct kb_bytes *code, uint64_t reg)
{
	uint8_t scale;

	if (!read_literal(code, &scale) || !next_is(code, MUL) || !next_is(code, PLUS))
		return false;
	kb_unwind_rule_step(rule, KB_UNWIND_CFA_INDEX, 0, reg, 0);
	last_step(rule)->count = scale;
	return true;
}

static bool add_operation(struct kb_unwind_rule *rule, struct kb_bytes *code, uint64_t ra)
{
	uint8_t what = kb_bytes_8(code);
	int64_t offset;
	uint64_t reg;

	if (what == DEREF) {
		kb_unwind_rule_step(rule, KB_UNWIND_CFA_LOAD, 0, 0, 0);
		return true;
	}
	if (what == PLUS_UCONST)
		return add_constant(rule, kb_bytes_unsigned(code));
	if (what >= LIT0 && what <= LIT31)
		return next_is(code, PLUS) && add_constant(rule, what - LIT0);
	if (what < BREG0 || what > BREG31)
		return false;
	reg = what - BREG0;
	offset = kb_bytes_signed(code);
	return !offset && (reg == ra ? add_plt(rule, code) : add_index(rule, code, reg));
}

void kb_unwind_expression_cfa(struct kb_unwind_rule *rule, struct kb_bytes code, uint64_t ra)
{
	int64_t offset;
	bool good;
	uint64_t reg;

	good = read_base(&code, &reg, &offset);
	if (good)
		kb_unwind_rule_step(rule, KB_UNWIND_CFA_BASE, 0, reg, offset);
	while (good && code.at < code.end && rule->steps[0].what == KB_UNWIND_RULE)
		good = add_operation(rule, &code, ra) && rule->steps[0].count <= 8;
	if (!good || code.bad)
		kb_unwind_rule_none(rule, KB_UNWIND_EXPRESSION);
}

void kb_unwind_expression_register(struct kb_unwind_rule *rule, struct kb_bytes code,
				   unsigned int reg, bool in_memory)
{
	int64_t offset;
	uint64_t base;

	if (read_base(&code, &base, &offset) && code.at == code.end &&
	    offset == (int32_t)offset)
		kb_unwind_rule_step(rule, in_memory ? KB_UNWIND_AT_BASE : KB_UNWIND_VALUE_BASE,
				    reg, base, offset);
	else
		kb_unwind_rule_step(rule, KB_UNWIND_LOST, reg, 0, 0);
}
