// SPDX-License-Identifier: MIT
/* Go says which functions have no caller; the chains of its goroutines end there, and are whole. */
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "../lib/tap.h"
#include "unwind/compile.h"

#define TEXT	0x401000U
#define SIZE	512U

/* .gopclntab of main.work, runtime.goexit, runtime.mcall and main.other, 0x20 bytes each. */
struct table {
	uint8_t bytes[SIZE];
	bool swap;
	unsigned int word;
};

static void put32(struct table *table, unsigned int at, uint32_t value)
{
	if (table->swap)
		value = __builtin_bswap32(value);
	memcpy(table->bytes + at, &value, sizeof(value));
}

static void put_word(struct table *table, unsigned int number, uint32_t value)
{
	unsigned int at = 8 + number * table->word;

	put32(table, table->swap && table->word == 8 ? at + 4 : at, value);
}

static void make_table(struct table *table, bool newer, bool swap, unsigned int word)
{
	static const char names[] = "main.work\0runtime.goexit\0runtime.mcall\0main.other";
	static const uint32_t name_at[] = { 0, 10, 25, 39 };
	const unsigned int functions = 160, functab = 40;

	*table = (struct table) { .swap = swap, .word = word };
	put32(table, 0, newer ? 0xfffffff1 : 0xfffffff0);
	table->bytes[6] = 1;
	table->bytes[7] = (uint8_t)word;
	put_word(table, 0, 4);
	put_word(table, 2, TEXT);
	put_word(table, 3, 80);
	put_word(table, 7, functions);
	memcpy(table->bytes + 80, names, sizeof(names));
	for (uint32_t i = 0; i < 4; i++) {
		const unsigned int at = functab + 48 * i;

		put32(table, functions + 8 * i, 0x20 * i);
		put32(table, functions + 8 * i + 4, at);
		put32(table, functions + at, 0x20 * i);
		put32(table, functions + at + 4, name_at[i]);
		table->bytes[functions + at + (newer ? 41 : 37)] = i == 1;	/* its flags */
	}
	put32(table, functions + 8 * 4, 0x20 * 4);
}

static int compile(struct kb_unwind_rows *rows, const struct table *table, uint16_t elf)
{
	struct kb_unwind_sections sections = {
		.elf = elf, .word = (uint8_t)table->word, .big_endian = table->swap,
		.low = TEXT, .high = TEXT + 0x1000, .go = { table->bytes, SIZE, 0 },
	};

	memset(rows, 0, sizeof(*rows));
	return kb_unwind_compile(rows, &sections, NULL);
}

static bool has_no_caller(const struct kb_unwind_rows *rows, uint64_t address)
{
	const struct kb_unwind_step *rule = kb_unwind_rule_at(rows, address);

	return rule->what == KB_UNWIND_RULE && rule[rule->count].what == KB_UNWIND_UNDEFINED &&
	       rule[rule->count].target == rule->target;
}

static void try_table(bool newer, bool swap, unsigned int word, uint16_t elf, const char *name)
{
	struct kb_unwind_rows rows;
	struct table table;

	make_table(&table, newer, swap, word);
	if (!tap_is(compile(&rows, &table, elf), 0, name))
		return;
	/* goexit is returned to behind its first instruction, so looked up in that */
	tap_ok(has_no_caller(&rows, TEXT + 0x20) && has_no_caller(&rows, TEXT + 0x45) &&
	       !has_no_caller(&rows, TEXT + 0x10) && !has_no_caller(&rows, TEXT + 0x65),
	       "goroutines_and_threads_begin_there");
	kb_unwind_rows_release(&rows);
}

static void try_damage(void)
{
	unsigned int made = 0;

	srand(7);
	for (int i = 0; i < 20000; i++) {
		struct kb_unwind_rows rows;
		struct table table;

		make_table(&table, i & 1, false, 8);
		for (int flips = 1 + rand() % 8; flips; flips--)
			table.bytes[rand() % 320] = (uint8_t)(rand() % 2 ? rand() : 255);
		made += !compile(&rows, &table, EM_X86_64);
		kb_unwind_rows_release(&rows);
	}
	tap_ok(made == 20000, "damaged_tables_are_survived");
}

int main(void)
{
	try_table(true, false, 8, EM_X86_64, "amd64");
	try_table(false, false, 8, EM_AARCH64, "arm64_by_an_older_go");
	try_table(true, true, 8, EM_S390, "s390x");
	try_damage();
	return tap_done();
}
