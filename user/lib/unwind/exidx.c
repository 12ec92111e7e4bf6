// SPDX-License-Identifier: MIT
/* See exidx.h. Instructions move a virtual SP; rules count from where that ends. */
#include "unwind/exidx.h"

#define SP	13
#define LR	14
#define PC	15
#define CANTUNWIND	1U
#define INLINE		0x80000000U	/* the word has instructions, and is no address */
#define FINISH		0xb0

struct machine {
	uint8_t base;		/* the virtual SP is this register */
	int64_t offset;		/* and so much */
	uint32_t popped;	/* registers: a bit for each */
	struct {
		uint8_t base;
		int64_t offset;
	} places[16];
};

/* Instructions: bytes of words, the highest byte of a word first. */
struct code {
	const struct kb_unwind_section *section;
	bool swap;
	size_t at;		/* of the word */
	unsigned int byte, left;
};

static uint32_t word_at(const struct kb_unwind_section *section, bool swap, size_t at)
{
	return at <= section->size && section->size - at >= 4 ?
		kb_load32(section->data + at, swap) : CANTUNWIND;
}

/* An address relative to its own place, in 31 bits. */
static uint64_t address_at(const struct kb_unwind_section *section, bool swap, size_t at)
{
	uint32_t word = word_at(section, swap, at);

	return (uint32_t)(section->address + at + (uint32_t)((int32_t)(word << 1) >> 1));
}

uint64_t kb_exidx_start(const struct kb_exidx *exidx, size_t at)
{
	return address_at(&exidx->index, exidx->swap, at);
}

static uint8_t next(struct code *code)
{
	uint32_t word;

	if (!code->left)
		return FINISH;
	code->left--;
	word = word_at(code->section, code->swap, code->at);
	if (code->byte == 3)
		code->at += 4;
	code->byte = (code->byte + 1) % 4;
	return word >> 8 * (3 - (code->byte + 3) % 4);
}

static void pop(struct machine *machine, uint32_t mask)
{
	for (unsigned int reg = 0; reg < 16; reg++) {
		if (!(mask & 1U << reg))
			continue;
		machine->popped |= 1U << reg;
		machine->places[reg].base = machine->base;
		machine->places[reg].offset = machine->offset;
		machine->offset += 4;
	}
}

static void pop_large(struct machine *machine, struct code *code)
{
	uint64_t value = 0;
	unsigned int shift;
	uint8_t byte = 0x80;

	for (shift = 0; byte & 0x80 && shift < 35; shift += 7) {
		byte = next(code);
		value |= (uint64_t)(byte & 0x7f) << shift;
	}
	machine->offset += 0x204 + (int64_t)(value << 2);
}

/* 0xb1 to 0xb7, and 0xb8 to 0xbf. False: a reserved instruction. */
static bool run_b(struct machine *machine, struct code *code, uint8_t byte)
{
	switch (byte) {
	case 0xb1:
		byte = next(code);
		pop(machine, byte);
		return byte && byte < 16;
	case 0xb2:
		pop_large(machine, code);
		return true;
	case 0xb3:
		machine->offset += (next(code) & 15) * 8 + 12;
		return true;
	case 0xb4:	/* the code that authenticates the return address */
		machine->offset += 4;
		return true;
	case 0xb5:
	case 0xb6:
	case 0xb7:
		return false;
	default:
		machine->offset += (byte & 7) * 8 + 12;
		return true;
	}
}

/* Registers of coprocessors. */
static bool run_c(struct machine *machine, struct code *code, uint8_t byte)
{
	if (byte < 0xc6 || (byte >= 0xd0 && byte <= 0xd7))
		machine->offset += (byte & 7) * 8 + 8;
	else if (byte == 0xc6 || byte == 0xc8 || byte == 0xc9)
		machine->offset += (next(code) & 15) * 8 + 8;
	else if (byte == 0xc7)
		machine->offset += 4 * __builtin_popcount(next(code) & 15);
	else
		return false;
	return true;
}

/* False: a reserved instruction, or one that refuses. */
static bool run(struct machine *machine, struct code *code, uint8_t byte)
{
	uint32_t mask;

	switch (byte >> 4) {
	case 0x0 ... 0x3:
		machine->offset += ((byte & 63) << 2) + 4;
		return true;
	case 0x4 ... 0x7:
		machine->offset -= ((byte & 63) << 2) + 4;
		return true;
	case 0x8:
		mask = (byte & 15U) << 12;
		mask |= (uint32_t)next(code) << 4;
		pop(machine, mask);
		return mask;
	case 0x9:
		machine->base = byte & 15;
		machine->offset = 0;
		return machine->base != SP && machine->base != PC &&
		       !(machine->popped & 1U << machine->base);
	case 0xa:
		pop(machine, ((2U << (byte & 7)) - 1) << 4 | (byte & 8 ? 1U << LR : 0));
		return true;
	case 0xb:
		return run_b(machine, code, byte);
	default:
		return run_c(machine, code, byte);
	}
}

/* Find the instructions of the entry at @at. False: the section ends before them. */
static bool find_code(const struct kb_exidx *exidx, size_t at, struct code *code)
{
	uint32_t word = word_at(&exidx->index, exidx->swap, at + 4);

	*code = (struct code) {
		.section = &exidx->index, .swap = exidx->swap, .at = at + 4, .byte = 1, .left = 3,
	};
	if (word & INLINE)
		return (word >> 24) == 0x80;
	code->section = &exidx->table;
	code->at = (uint32_t)(address_at(&exidx->index, exidx->swap, at + 4) -
			      exidx->table.address);
	word = word_at(code->section, code->swap, code->at);
	if (word == CANTUNWIND)	/* also after the end */
		return false;
	if (!(word & INLINE)) {	/* a personality routine; compilers use one form with all */
		code->at += 4;
		word = word_at(code->section, code->swap, code->at);
		code->left = 3 + 4 * (word >> 24);
	} else if ((word >> 24 & 15) != 0) {
		code->byte = 2;
		code->left = 2 + 4 * (word >> 16 & 0xff);
	}
	return code->at + code->byte + code->left <= code->section->size;
}

static void make_rule(const struct machine *machine, struct kb_unwind_rule *rule)
{
	uint32_t all = 1U << SP | 1U << PC, left = machine->popped;
	bool whole = (left & all) == all;	/* only what ends a signal handler sets both */

	kb_unwind_rule_begin(rule, left & 1U << PC ? PC : LR, whole ? KB_UNWIND_SIGNAL : 0);
	kb_unwind_rule_step(rule, KB_UNWIND_CFA_BASE, 0, machine->base, machine->offset);
	for (; left; left &= left - 1) {
		unsigned int reg = __builtin_ctz(left);
		int64_t offset = machine->places[reg].offset;

		if (machine->places[reg].base == machine->base)
			kb_unwind_rule_step(rule, KB_UNWIND_AT, reg, 0, offset - machine->offset);
		else
			kb_unwind_rule_step(rule, KB_UNWIND_AT_BASE, reg,
					    machine->places[reg].base, offset);
	}
}

void kb_exidx_rule(const struct kb_exidx *exidx, size_t at, struct kb_unwind_rule *rule)
{
	struct machine machine = { .base = SP };
	struct code code;
	uint8_t byte;

	if (word_at(&exidx->index, exidx->swap, at + 4) == CANTUNWIND) {
		kb_unwind_rule_none(rule, KB_UNWIND_CANTUNWIND);
		return;
	}
	if (!find_code(exidx, at, &code)) {
		kb_unwind_rule_none(rule, KB_UNWIND_DAMAGED);
		return;
	}
	while ((byte = next(&code)) != FINISH)
		if (!run(&machine, &code, byte)) {
			kb_unwind_rule_none(rule, KB_UNWIND_CANTUNWIND);
			return;
		}
	make_rule(&machine, rule);
}
