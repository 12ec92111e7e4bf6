// SPDX-License-Identifier: MIT
/*
 * _init and _fini have no table; the instructions of glibc and musl are known. The bytes are those of
 * libcrypto of Debian 12 (its .init), of glibc's crti.o and crtn.o on i386, and of musl's on amd64.
 */
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "../lib/tap.h"
#include "base/array.h"
#include "unwind/compile.h"

#define AT	0x5000U

struct code {
	const char *name;
	uint16_t elf;
	uint8_t word, size;
	uint8_t bytes[32];
	/* for each byte: how far the caller's SP is above SP, in words */
	const char *words;
	unsigned int rbx;	/* from this byte on rbx is at CFA - 2 words; 0: it never is */
};

static const struct code codes[] = {
	{ "each_instruction_of_libcryptos_init_has_its_rule", EM_X86_64, 8, 28, {
		0x48, 0x83, 0xec, 0x08,				/* sub $8, %rsp */
		0x48, 0x8b, 0x05, 0x65, 0xeb, 0x3b, 0x00,	/* mov __gmon_start__, %rax */
		0x48, 0x85, 0xc0, 0x74, 0x02, 0xff, 0xd0,	/* test, je, call *%rax */
		0xe8, 0xc9, 0xc9, 0x16, 0x00,			/* call OPENSSL_cpuid_setup */
		0x48, 0x83, 0xc4, 0x08, 0xc3 },			/* add $8, %rsp; ret */
	  "1111" "2222222" "2222222" "22222" "22221", 0 },
	{ "each_one_of_i386", EM_386, 4, 23, {
		0xf3, 0x0f, 0x1e, 0xfb,				/* endbr32 */
		0x53, 0x83, 0xec, 0x08,				/* push %ebx; sub $8, %esp */
		0xe8, 0xb7, 0x00, 0x00, 0x00,			/* call __x86.get_pc_thunk.bx */
		0x81, 0xc3, 0xdb, 0x2e, 0x00,			/* add, one byte less */
		0x83, 0xc4, 0x08, 0x5b, 0xc3 },			/* add $8, %esp; pop %ebx; ret */
	  "1111" "1222" "44444" "44444" "44421", 5 },
	{ "each_one_of_musl", EM_X86_64, 8, 8, {
		0x50, 0xe8, 0x10, 0x00, 0x00, 0x00,		/* push %rax; call */
		0x58, 0xc3 },					/* pop %rax; ret */
	  "122222" "21", 0 },
	{ "each_one_where_there_is_nothing_between", EM_X86_64, 8, 9, {
		0x48, 0x83, 0xec, 0x08, 0x48, 0x83, 0xc4, 0x08, 0xc3 },
	  "1111" "22221", 0 },
};

/* Rows of the @size bytes @bytes, as .init, or as .fini. */
static void make(struct kb_unwind_rows *rows, const struct code *code, const uint8_t *bytes, size_t size,
		 bool fini)
{
	struct kb_unwind_sections sections = {
		.elf = code->elf, .word = code->word, .low = AT, .high = AT + 0x1000 };

	memset(rows, 0, sizeof(*rows));
	sections.init[fini] = (struct kb_unwind_section) { bytes, size, AT };
	if (kb_unwind_compile(rows, &sections, NULL))
		tap_note("it can't be compiled");
}

static bool is_right(const struct kb_unwind_rows *rows, const struct code *code, unsigned int i)
{
	const struct kb_unwind_step *rule = kb_unwind_rule_at(rows, AT + i);
	const unsigned int has_rbx = code->rbx && i >= code->rbx && i < code->size - 1U;
	const struct kb_unwind_machine *machine = rows->machine;

	return rule->what == KB_UNWIND_RULE && rule->count == 2 + has_rbx &&
	       rule[1].what == KB_UNWIND_CFA_BASE && rule[1].base == machine->sp &&
	       rule[1].offset == (code->words[i] - '0') * code->word &&
	       (!has_rbx || (rule[2].what == KB_UNWIND_AT && rule[2].target == 3 &&
			     rule[2].offset == -2 * code->word)) &&
	       rule[2 + has_rbx].what == KB_UNWIND_AT && rule[2 + has_rbx].target == rule->target &&
	       rule->target == machine->nr - 1 && rule[2 + has_rbx].offset == -code->word;
}

static void each_instruction_has_its_rule(const struct code *code, bool fini)
{
	struct kb_unwind_rows rows;
	struct kb_unwind_bounds bounds;
	bool right = true;

	make(&rows, code, code->bytes, code->size, fini);
	for (unsigned int i = 0; i < code->size; i++) {
		if (is_right(&rows, code, i))
			continue;
		tap_note("byte %u", i);
		right = false;
	}
	right = right && kb_unwind_rule_at(&rows, AT + code->size)->what == KB_UNWIND_NO_RULE &&
		kb_unwind_function_at(&rows, AT + 1, &bounds) && bounds.start == AT &&
		bounds.end == AT + code->size;
	tap_ok(right, code->name);
	kb_unwind_rows_release(&rows);
}

/* What the code takes is not what it gives back, or it ends elsewhere. */
static void other_code_has_none(const struct code *code)
{
	static const uint8_t others[][12] = {
		{ 0x48, 0x83, 0xec, 0x08, 0x90, 0x48, 0x83, 0xc4, 0x18, 0xc3 },	/* another size */
		{ 0x48, 0x83, 0xec, 0x08, 0x90, 0x48, 0x83, 0xc4, 0x08, 0x90 },	/* no ret */
		{ 0x48, 0x83, 0xec, 0xf8, 0x90, 0x48, 0x83, 0xc4, 0xf8, 0xc3 },	/* it gives */
		{ 0x48, 0x83, 0xec, 0x08, 0x90, 0x48, 0x83, 0xec, 0x08, 0xc3 },	/* sub, sub */
		{ 0x53, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x58, 0xc3 },	/* pop %rax */
		{ 0x90, 0x90, 0x90, 0x90, 0x90, 0x48, 0x83, 0xc4, 0x08, 0xc3 },	/* takes nothing */
		{ 0x50, 0x50, 0x50, 0x50, 0x50, 0x58, 0x58, 0x58, 0x58, 0xc3 },	/* five, and four */
	};
	struct kb_unwind_rows rows;
	bool none = true;

	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		for (size_t size = 0; size <= 10; size++) {
			make(&rows, code, others[i], size, false);
			if (kb_unwind_rule_at(&rows, AT)->what != KB_UNWIND_NO_RULE) {
				tap_note("code %zu, %zu bytes", i, size);
				none = false;
			}
			kb_unwind_rows_release(&rows);
		}
	tap_ok(none, "code_that_does_not_give_back_what_it_takes_has_no_rule");
}

int main(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(codes); i++) {
		each_instruction_has_its_rule(&codes[i], false);
		each_instruction_has_its_rule(&codes[i], true);
	}
	other_code_has_none(&codes[0]);
	return tap_done();
}
