// SPDX-License-Identifier: MIT
/* See cfi.h. Rules of registers that can't hold an address are read and forgotten. */
#include <elf.h>

#include "unwind/cfi.h"

/* The upper two bits are an instruction, and the others its first operand. */
#define ADVANCE_LOC	0x40
#define OFFSET		0x80
#define RESTORE		0xc0
#define UPPER		0xc0

enum instruction {
	NOP = 0x00, SET_LOC = 0x01, ADVANCE_LOC1 = 0x02, ADVANCE_LOC2 = 0x03, ADVANCE_LOC4 = 0x04,
	OFFSET_EXTENDED = 0x05, RESTORE_EXTENDED = 0x06, UNDEFINED = 0x07, SAME_VALUE = 0x08,
	REGISTER = 0x09, REMEMBER_STATE = 0x0a, RESTORE_STATE = 0x0b, DEF_CFA = 0x0c,
	DEF_CFA_REGISTER = 0x0d, DEF_CFA_OFFSET = 0x0e, DEF_CFA_EXPRESSION = 0x0f,
	EXPRESSION = 0x10, OFFSET_EXTENDED_SF = 0x11, DEF_CFA_SF = 0x12, DEF_CFA_OFFSET_SF = 0x13,
	VAL_OFFSET = 0x14, VAL_OFFSET_SF = 0x15, VAL_EXPRESSION = 0x16, ADVANCE_LOC8 = 0x1d,
	NEGATE_RA_STATE = 0x2d, GNU_ARGS_SIZE = 0x2e, GNU_NEGATIVE_OFFSET_EXTENDED = 0x2f,
};

static void set(struct kb_cfi *cfi, uint64_t reg, struct kb_cfi_rule rule)
{
	if (reg >= cfi->frames->machine->nr)
		return;
	cfi->now.regs[reg] = rule;
	if (rule.kind == KB_CFI_SAME)
		cfi->now.set &= ~(1U << reg);
	else
		cfi->now.set |= 1U << reg;
}

static void set_offset(struct kb_cfi *cfi, uint64_t reg, enum kb_cfi_kind kind, int64_t factored)
{
	set(cfi, reg, (struct kb_cfi_rule) {
		.kind = kind,
		.number = (int64_t)((uint64_t)factored * (uint64_t)cfi->cie->data_align),
	});
}

static void restore(struct kb_cfi *cfi, uint64_t reg)
{
	if (reg < cfi->frames->machine->nr)
		set(cfi, reg, cfi->initial ? cfi->initial->regs[reg] : (struct kb_cfi_rule) { 0 });
}

static struct kb_cfi_rule expression(struct kb_bytes *code, enum kb_cfi_kind kind)
{
	uint64_t length = kb_bytes_unsigned(code);
	struct kb_cfi_rule rule = {
		.kind = kind, .length = (uint32_t)length, .number = (int64_t)code->at,
	};

	kb_bytes_skip(code, length);
	return rule;
}

static void set_cfa(struct kb_cfi *cfi, uint64_t reg, int64_t offset)
{
	cfi->now.cfa = (struct kb_cfi_rule) {
		.kind = KB_CFI_REGISTER, .base = reg > UINT32_MAX ? UINT32_MAX : (uint32_t)reg,
		.number = offset,
	};
}

static bool remember(struct kb_cfi *cfi)
{
	if (cfi->nr_saved == KB_CFI_SAVED)
		return false;
	cfi->saved[cfi->nr_saved++] = cfi->now;
	return true;
}

static bool recall(struct kb_cfi *cfi)
{
	if (!cfi->nr_saved)
		return false;
	cfi->now = cfi->saved[--cfi->nr_saved];
	return true;
}

/* The rules of registers; @reg is their first operand. False: another instruction. */
static bool run_register(struct kb_cfi *cfi, struct kb_bytes *code, enum instruction what,
			 uint64_t reg)
{
	switch (what) {
	case OFFSET_EXTENDED:
		set_offset(cfi, reg, KB_CFI_OFFSET, (int64_t)kb_bytes_unsigned(code));
		return true;
	case OFFSET_EXTENDED_SF:
		set_offset(cfi, reg, KB_CFI_OFFSET, kb_bytes_signed(code));
		return true;
	case GNU_NEGATIVE_OFFSET_EXTENDED:
		set_offset(cfi, reg, KB_CFI_OFFSET, (int64_t)-kb_bytes_unsigned(code));
		return true;
	case VAL_OFFSET:
		set_offset(cfi, reg, KB_CFI_VALUE, (int64_t)kb_bytes_unsigned(code));
		return true;
	case VAL_OFFSET_SF:
		set_offset(cfi, reg, KB_CFI_VALUE, kb_bytes_signed(code));
		return true;
	case RESTORE_EXTENDED:
		restore(cfi, reg);
		return true;
	case UNDEFINED:
		set(cfi, reg, (struct kb_cfi_rule) { .kind = KB_CFI_UNDEFINED });
		return true;
	case SAME_VALUE:
		set(cfi, reg, (struct kb_cfi_rule) { .kind = KB_CFI_SAME });
		return true;
	case REGISTER:
		set(cfi, reg, (struct kb_cfi_rule) {
			.kind = KB_CFI_REGISTER, .base = (uint32_t)kb_bytes_unsigned(code) });
		return true;
	case EXPRESSION:
		set(cfi, reg, expression(code, KB_CFI_EXPRESSION));
		return true;
	case VAL_EXPRESSION:
		set(cfi, reg, expression(code, KB_CFI_VALUE_EXPRESSION));
		return true;
	default:
		return false;
	}
}

/* The rule of the CFA. False: another instruction, or the CFA is no register and an offset. */
static bool run_cfa(struct kb_cfi *cfi, struct kb_bytes *code, enum instruction what)
{
	struct kb_cfi_rule *cfa = &cfi->now.cfa;
	int64_t align = cfi->cie->data_align;
	uint64_t reg;

	switch (what) {
	case DEF_CFA:
		reg = kb_bytes_unsigned(code);
		set_cfa(cfi, reg, (int64_t)kb_bytes_unsigned(code));
		return true;
	case DEF_CFA_SF:
		reg = kb_bytes_unsigned(code);
		set_cfa(cfi, reg, (int64_t)((uint64_t)kb_bytes_signed(code) * (uint64_t)align));
		return true;
	case DEF_CFA_REGISTER:
		set_cfa(cfi, kb_bytes_unsigned(code), cfa->number);
		return true;
	case DEF_CFA_OFFSET:
		cfa->number = (int64_t)kb_bytes_unsigned(code);
		return cfa->kind == KB_CFI_REGISTER;
	case DEF_CFA_OFFSET_SF:
		cfa->number = (int64_t)((uint64_t)kb_bytes_signed(code) * (uint64_t)align);
		return cfa->kind == KB_CFI_REGISTER;
	case DEF_CFA_EXPRESSION:
		*cfa = expression(code, KB_CFI_EXPRESSION);
		return true;
	default:
		return false;
	}
}

/* False: another instruction. */
static bool run_state(struct kb_cfi *cfi, struct kb_bytes *code, enum instruction what)
{
	switch (what) {
	case NOP:
		return true;
	case REMEMBER_STATE:
		return remember(cfi);
	case RESTORE_STATE:
		return recall(cfi);
	case GNU_ARGS_SIZE:
		kb_bytes_unsigned(code);
		return true;
	case NEGATE_RA_STATE:	/* other machines have another instruction of that number */
		cfi->now.is_signed ^= cfi->frames->machine->elf == EM_AARCH64;
		return cfi->frames->machine->elf == EM_AARCH64;
	default:
		return run_cfa(cfi, code, what);
	}
}

static bool advance(struct kb_cfi *cfi, struct kb_bytes *code, enum instruction what)
{
	uint64_t delta;

	switch (what) {
	case SET_LOC:
		return kb_frames_address(cfi->frames, code, cfi->cie->encoding, &cfi->address);
	case ADVANCE_LOC1:
		delta = kb_bytes_8(code);
		break;
	case ADVANCE_LOC2:
		delta = kb_bytes_16(code);
		break;
	case ADVANCE_LOC4:
		delta = kb_bytes_32(code);
		break;
	default:
		delta = kb_bytes_64(code);
		break;
	}
	cfi->address += delta * cfi->cie->code_align;
	return true;
}

static bool has_register(enum instruction what)
{
	return (what >= OFFSET_EXTENDED && what <= REGISTER) || what == EXPRESSION ||
	       what == OFFSET_EXTENDED_SF || (what >= VAL_OFFSET && what <= VAL_EXPRESSION) ||
	       what == GNU_NEGATIVE_OFFSET_EXTENDED;
}

enum kb_cfi_result kb_cfi_run(struct kb_cfi *cfi, struct kb_bytes *code)
{
	while (code->at < code->end) {
		uint8_t byte = kb_bytes_8(code), operand = byte & ~UPPER;
		bool good = true, advanced = false;

		switch (byte & UPPER) {
		case ADVANCE_LOC:
			cfi->address += operand * cfi->cie->code_align;
			return KB_CFI_ADVANCED;
		case OFFSET:
			set_offset(cfi, operand, KB_CFI_OFFSET, (int64_t)kb_bytes_unsigned(code));
			break;
		case RESTORE:
			restore(cfi, operand);
			break;
		default:
			advanced = byte == ADVANCE_LOC8 ||
				   (byte >= SET_LOC && byte <= ADVANCE_LOC4);
			if (advanced)
				good = advance(cfi, code, byte);
			else if (has_register(byte))
				good = run_register(cfi, code, byte, kb_bytes_unsigned(code));
			else
				good = run_state(cfi, code, byte);
		}
		if (!good || code->bad)
			return KB_CFI_BAD;
		if (advanced)
			return KB_CFI_ADVANCED;
	}
	return KB_CFI_END;
}
