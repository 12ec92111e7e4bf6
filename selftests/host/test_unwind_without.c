// SPDX-License-Identifier: MIT
/* Frames whose code has no table, or a wrong one: how they are left all the same. */
#include <elf.h>
#include <string.h>
#include <unistd.h>

#include "../lib/tap.h"
#include "base/array.h"
#include "unwind/builder.h"
#include "unwind/walker.h"

#define FILE_AT		0x10000U	/* code of a file, with tables */
#define OTHER		0x14000U	/* code of that file with another rule */
#define NO_TABLE	0x18000U	/* code of that file that has none */
#define CONTEXT		0x1c000U	/* a function behind it */
#define FILE_END	0x20000U
#define JIT		0x50000U	/* code that is in no file */
#define SP		0x700000U
#define HIGH		0x700400U

struct sample {
	struct kb_unwind_rows rows;
	struct kb_unwind_registers registers;
	struct kb_unwind_word words[16];
	struct kb_unwind_stack stack;
	struct kb_unwind_frame frames[8];
	struct kb_unwind_chain chain;
};

/* Functions from FILE_AT on have the rule of @steps, from OTHER on @other, from NO_TABLE on none. */
static void begin_two(struct sample *sample, uint16_t elf, const struct kb_unwind_step *steps,
		      const struct kb_unwind_step *other)
{
	static const struct kb_unwind_step none = {
		.what = KB_UNWIND_NO_RULE, .offset = KB_UNWIND_UNCOVERED };
	const struct kb_unwind_machine *machine = kb_unwind_machine(elf, elf == EM_ARM ? 4 : 8);
	struct kb_unwind_builder builder;

	memset(sample, 0, sizeof(*sample));
	kb_unwind_builder_init(&builder, machine, FILE_AT);
	kb_unwind_builder_row(&builder, FILE_AT, kb_unwind_builder_rule(&builder, steps), true);
	kb_unwind_builder_row(&builder, OTHER, kb_unwind_builder_rule(&builder, other), true);
	kb_unwind_builder_row(&builder, NO_TABLE, kb_unwind_builder_rule(&builder, &none), false);
	kb_unwind_builder_row(&builder, CONTEXT, kb_unwind_builder_rule(&builder, steps), true);
	kb_unwind_builder_row(&builder, FILE_END, kb_unwind_builder_rule(&builder, &none), false);
	kb_unwind_builder_finish(&builder, &sample->rows);
	kb_unwind_builder_release(&builder);
	sample->stack = (struct kb_unwind_stack) {
		.words = sample->words, .low = SP, .high = HIGH, .machine = machine };
	sample->chain = (struct kb_unwind_chain) {
		.frames = sample->frames, .max = ARRAY_SIZE(sample->frames) };
}

static void begin(struct sample *sample, uint16_t elf, const struct kb_unwind_step *steps)
{
	begin_two(sample, elf, steps, steps);
}

static void has(struct sample *sample, unsigned int reg, uint64_t value)
{
	sample->registers.value[reg] = value;
	sample->registers.known |= UINT64_C(1) << reg;
}

/* Words come in the order of their addresses. */
static void keeps(struct sample *sample, uint64_t address, uint64_t word)
{
	sample->words[sample->stack.nr++] = (struct kb_unwind_word) { address, word };
}

static const struct kb_unwind_rows *find(void *closure, uint64_t address, uint64_t *bias)
{
	struct sample *sample = closure;

	*bias = 0;
	return address >= FILE_AT && address < FILE_END ? &sample->rows : NULL;
}

/* Whether the chain is @pcs, which 0 ends. */
static bool gives(struct sample *sample, const uint64_t *pcs)
{
	uint32_t i = 0;

	kb_unwind_walk(&sample->chain, &sample->registers, &sample->stack, find, sample);
	while (i < sample->chain.nr && pcs[i] && sample->frames[i].pc == pcs[i])
		i++;
	for (uint32_t k = 0; k < sample->chain.nr && (i < sample->chain.nr || pcs[i]); k++)
		tap_note("0x%llx", (unsigned long long)sample->frames[k].pc);
	kb_unwind_rows_release(&sample->rows);
	return i == sample->chain.nr && !pcs[i];
}

/* CFA = SP + 32, the caller's address 8 bytes below it */
static const struct kb_unwind_step amd64[] = {
	{ .what = KB_UNWIND_RULE, .target = 16, .count = 2 },
	{ .what = KB_UNWIND_CFA_BASE, .base = 7, .offset = 32 },
	{ .what = KB_UNWIND_AT, .target = 16, .offset = -8 },
};

static const struct kb_unwind_step arm64[] = {
	{ .what = KB_UNWIND_RULE, .target = 30, .count = 3 },
	{ .what = KB_UNWIND_CFA_BASE, .base = 31, .offset = 32 },
	{ .what = KB_UNWIND_AT, .target = 29, .offset = -32 },
	{ .what = KB_UNWIND_AT, .target = 30, .offset = -24 },
};

static const struct kb_unwind_step armhf[] = {
	{ .what = KB_UNWIND_RULE, .target = 14, .count = 2 },
	{ .what = KB_UNWIND_CFA_BASE, .base = 13, .offset = 32 },
	{ .what = KB_UNWIND_AT, .target = 14, .offset = -4 },
};

/* CFA = the word at SP + 16, + 8 */
static const struct kb_unwind_step saved_sp[] = {
	{ .what = KB_UNWIND_RULE, .target = 16, .count = 3 },
	{ .what = KB_UNWIND_CFA_BASE, .base = 7, .offset = 16 },
	{ .what = KB_UNWIND_CFA_LOAD, .offset = 8 },
	{ .what = KB_UNWIND_AT, .target = 16, .offset = -8 },
};

static void try_link(void)
{
	static struct sample s;

	begin(&s, EM_AARCH64, arm64);
	has(&s, KB_UNWIND_PC, NO_TABLE + 4);
	has(&s, 31, SP);
	has(&s, 30, FILE_AT + 0x10);
	has(&s, 29, SP + 0x100);
	keeps(&s, SP + 8, FILE_AT + 0x20);
	tap_ok(gives(&s, (uint64_t[]) { NO_TABLE + 4, FILE_AT + 0x10, FILE_AT + 0x20, 0 }),
	       "a_function_that_calls_none_is_left_by_the_link_register");

	begin(&s, EM_AARCH64, arm64);
	has(&s, KB_UNWIND_PC, NO_TABLE + 4);
	has(&s, 31, SP);
	has(&s, 30, FILE_AT + 0x10);
	has(&s, 29, SP + 0x20);
	keeps(&s, SP + 0x20, SP + 0x200);		/* its record; its frame has 0x40 bytes */
	keeps(&s, SP + 0x28, FILE_AT + 0x10);
	keeps(&s, SP + 0x60 + 8, FILE_AT + 0x20);	/* its caller's */
	tap_ok(gives(&s, (uint64_t[]) { NO_TABLE + 4, FILE_AT + 0x10, FILE_AT + 0x20, 0 }),
	       "one_with_a_frame_by_its_frame_and_the_sp_with_which_its_caller_has_a_caller");

	begin(&s, EM_AARCH64, arm64);
	has(&s, KB_UNWIND_PC, NO_TABLE + 4);
	has(&s, 31, SP);
	has(&s, 30, FILE_AT + 0x10);
	keeps(&s, SP + 0x80 + 8, FILE_AT + 0x20);	/* behind its 0x80 bytes */
	tap_ok(gives(&s, (uint64_t[]) { NO_TABLE + 4, FILE_AT + 0x10, FILE_AT + 0x20, 0 }),
	       "one_with_a_frame_and_no_record_by_the_sp_with_which_its_caller_has_a_caller");

	/* A program can have any SP. */
	begin(&s, EM_AARCH64, arm64);
	s.stack.low = s.stack.high = UINT64_MAX - 512;
	has(&s, KB_UNWIND_PC, NO_TABLE + 4);
	has(&s, 31, UINT64_MAX - 512);
	has(&s, 30, FILE_AT + 0x10);
	alarm(300);
	tap_ok(gives(&s, (uint64_t[]) { NO_TABLE + 4, FILE_AT + 0x10, 0 }),
	       "the_search_for_a_frame_ends_where_addresses_end");
	alarm(0);

	begin(&s, EM_AARCH64, arm64);
	has(&s, KB_UNWIND_PC, FILE_AT + 4);
	has(&s, 31, SP);
	has(&s, 30, FILE_AT + 0x10);
	keeps(&s, SP + 8, NO_TABLE + 0x20);
	tap_ok(gives(&s, (uint64_t[]) { FILE_AT + 4, NO_TABLE + 0x20, 0 }) &&
	       s.chain.end == KB_UNWIND_REFUSED,
	       "one_that_called_is_not_left_by_it");
}

/* Its tables say what holds behind a prologue. */
/* As for ld.so of arm64 when it binds a function: the PLT has pushed two words. */
static void try_forgotten(void)
{
	static const struct kb_unwind_step steps[] = {
		{ .what = KB_UNWIND_RULE, .target = 30, .count = 2 },
		{ .what = KB_UNWIND_CFA_BASE, .base = 31, .offset = 16 },
		{ .what = KB_UNWIND_AT, .target = 30, .offset = 8 },
	};
	struct sample s;

	begin(&s, EM_AARCH64, steps);
	has(&s, KB_UNWIND_PC, FILE_AT + 4);
	has(&s, 31, SP);
	keeps(&s, SP + 24, FILE_AT + 0x10);
	keeps(&s, SP + 56, FILE_AT + 0x20);
	tap_ok(gives(&s, (uint64_t[]) { FILE_AT + 4, FILE_AT + 0x10, FILE_AT + 0x20, 0 }),
	       "a_caller_is_above_the_place_of_its_address");
}

static void try_prologue(void)
{
	static struct sample s;

	begin(&s, EM_ARM, armhf);
	has(&s, KB_UNWIND_PC, FILE_AT + 4);
	has(&s, 13, SP);
	has(&s, 14, FILE_AT + 0x11);			/* Thumb code */
	keeps(&s, SP + 4 + 28, FILE_AT + 0x21);		/* one word has been pushed */
	tap_ok(gives(&s, (uint64_t[]) { FILE_AT + 4, FILE_AT + 0x10, FILE_AT + 0x20, 0 }),
	       "a_prologue_of_armhf_is_left_by_the_link_register");

	begin(&s, EM_ARM, armhf);
	has(&s, KB_UNWIND_PC, FILE_AT + 4);
	has(&s, 13, SP);
	has(&s, 14, 0);
	tap_ok(gives(&s, (uint64_t[]) { FILE_AT + 4, 0 }) && s.chain.end == KB_UNWIND_ZERO,
	       "a_start_of_armhf_is_not");
}

static void try_frame(void)
{
	static struct sample s;

	begin(&s, EM_X86_64, amd64);
	has(&s, KB_UNWIND_PC, JIT + 4);
	has(&s, 7, SP);
	has(&s, 6, SP + 0x40);
	keeps(&s, SP + 0x40, SP + 0x80);
	keeps(&s, SP + 0x48, JIT + 8);
	keeps(&s, SP + 0x80, SP + 0x200);
	keeps(&s, SP + 0x88, FILE_AT + 0x10);
	keeps(&s, SP + 0x90 + 24, FILE_AT + 0x20);
	tap_ok(gives(&s, (uint64_t[]) { JIT + 4, JIT + 8, FILE_AT + 0x10, FILE_AT + 0x20, 0 }),
	       "code_of_no_file_is_left_by_frame_pointers");

	begin(&s, EM_X86_64, amd64);
	has(&s, KB_UNWIND_PC, JIT + 4);
	has(&s, 7, SP);
	has(&s, 6, 12345);
	tap_ok(gives(&s, (uint64_t[]) { JIT + 4, 0 }) && s.chain.end == KB_UNWIND_NO_ROWS,
	       "but_not_by_a_number");

	/* As V8's builtins, which call compiled code. */
	begin(&s, EM_X86_64, amd64);
	has(&s, KB_UNWIND_PC, JIT + 4);
	has(&s, 7, SP);
	has(&s, 6, SP + 0x40);
	keeps(&s, SP + 0x40, SP + 0x80);
	keeps(&s, SP + 0x48, NO_TABLE + 8);
	keeps(&s, SP + 0x80, SP + 0x200);
	keeps(&s, SP + 0x88, FILE_AT + 0x10);
	keeps(&s, SP + 0x90 + 24, FILE_AT + 0x20);
	tap_ok(gives(&s, (uint64_t[]) { JIT + 4, NO_TABLE + 8, FILE_AT + 0x10, FILE_AT + 0x20, 0 }),
	       "a_caller_without_a_table_is_left_by_its_frame_pointer");

	begin(&s, EM_X86_64, amd64);
	has(&s, KB_UNWIND_PC, FILE_AT + 4);
	has(&s, 7, SP);
	has(&s, 6, SP + 0x80);
	keeps(&s, SP + 24, NO_TABLE + 8);
	keeps(&s, SP + 0x80, SP + 0x200);
	keeps(&s, SP + 0x88, FILE_AT + 0x10);		/* it has no caller there */
	tap_ok(gives(&s, (uint64_t[]) { FILE_AT + 4, NO_TABLE + 8, 0 }) &&
	       s.chain.end == KB_UNWIND_REFUSED,
	       "but_not_to_where_no_caller_is");

	begin(&s, EM_X86_64, amd64);
	has(&s, KB_UNWIND_PC, FILE_AT + 4);
	has(&s, 7, SP);
	has(&s, 6, SP + 0x80);
	keeps(&s, SP + 24, NO_TABLE + 8);
	keeps(&s, SP + 0x80, SP + 0x180);
	keeps(&s, SP + 0x88, SP + 0x200);
	tap_ok(gives(&s, (uint64_t[]) { FILE_AT + 4, NO_TABLE + 8, 0 }) &&
	       s.chain.end == KB_UNWIND_REFUSED,
	       "nor_to_a_pointer_into_the_stack");
}

/* What was interrupted had a value in r10, which no caller has. */
static void try_scratch(void)
{
	static const struct kb_unwind_step by_r10[] = {
		{ .what = KB_UNWIND_RULE, .target = 16, .count = 2 },
		{ .what = KB_UNWIND_CFA_BASE, .base = 10, .offset = 0 },
		{ .what = KB_UNWIND_AT, .target = 16, .offset = -8 },
	};
	static struct sample s;

	begin_two(&s, EM_X86_64, amd64, by_r10);
	has(&s, KB_UNWIND_PC, FILE_AT + 4);
	has(&s, 7, SP);
	has(&s, 6, SP + 0x80);
	has(&s, 10, SP + 0x108);
	keeps(&s, SP + 24, JIT + 8);
	keeps(&s, SP + 0x80, SP + 0x180);
	keeps(&s, SP + 0x88, OTHER + 0x10);
	keeps(&s, SP + 0x100, FILE_AT + 0x20);
	tap_ok(gives(&s, (uint64_t[]) { FILE_AT + 4, JIT + 8, OTHER + 0x10, 0 }) &&
	       s.chain.end == KB_UNWIND_NO_REGISTER,
	       "a_caller_has_no_registers_of_what_was_interrupted");
}

static void try_end(bool whole)
{
	static struct sample s;

	begin(&s, EM_X86_64, amd64);
	s.stack.whole = whole;
	has(&s, KB_UNWIND_PC, FILE_AT + 4);
	has(&s, 7, HIGH - 40);
	keeps(&s, HIGH - 16, NO_TABLE + 8);
	tap_ok(gives(&s, (uint64_t[]) { FILE_AT + 4, NO_TABLE + 8, 0 }) &&
	       s.chain.end == (whole ? KB_UNWIND_WHOLE : KB_UNWIND_REFUSED),
	       whole ? "code_without_a_table_where_the_stack_ends_is_a_start" :
		       "where_more_stack_may_be_it_is_not");
}

static void try_saved(uint64_t place, const char *name)
{
	static struct sample s;

	begin(&s, EM_X86_64, saved_sp);
	has(&s, KB_UNWIND_PC, FILE_AT + 4);
	has(&s, 7, SP);
	keeps(&s, SP + 8, SP + 0x300);		/* points to no return address */
	keeps(&s, place, SP + 0x100);
	keeps(&s, SP + 0x100, NO_TABLE + 8);
	tap_ok(gives(&s, (uint64_t[]) { FILE_AT + 4, NO_TABLE + 8, 0 }), name);
}

/* makecontext() makes the first function of a stack return to where another one begins. */
static void try_context(void)
{
	static struct sample s;

	begin(&s, EM_X86_64, amd64);
	has(&s, KB_UNWIND_PC, FILE_AT + 0x10);
	has(&s, 7, SP);
	keeps(&s, SP + 24, FILE_AT + 0x20);
	keeps(&s, SP + 56, CONTEXT);
	keeps(&s, SP + 88, FILE_AT + 0x30);	/* what is on that stack beside */
	tap_ok(gives(&s, (uint64_t[]) { FILE_AT + 0x10, FILE_AT + 0x20, 0 }) &&
	       s.chain.end == KB_UNWIND_WHOLE, "a_context_begins_with_its_function");

	begin(&s, EM_X86_64, amd64);
	has(&s, KB_UNWIND_PC, FILE_AT + 0x10);
	has(&s, 7, SP);
	keeps(&s, SP + 24, CONTEXT + 1);
	tap_ok(gives(&s, (uint64_t[]) { FILE_AT + 0x10, CONTEXT + 1, 0 }) &&
	       s.chain.end != KB_UNWIND_WHOLE, "a_call_returns_behind_where_a_function_begins");
}

int main(void)
{
	try_link();
	try_forgotten();
	try_prologue();
	try_frame();
	try_context();
	try_scratch();
	try_end(true);
	try_end(false);
	try_saved(SP + 16, "sp_is_where_the_table_says");
	try_saved(SP + 80, "or_behind_it_if_the_function_has_moved_it");
	return tap_done();
}
