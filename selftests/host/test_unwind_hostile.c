// SPDX-License-Identifier: MIT
/*
 * Hostile unwind tables cost their own rows and no more than their size; a block of rows from a
 * file or from another process is refused if anything would follow it out of its arrays.
 */
#include <elf.h>
#include <errno.h>
#include <stdlib.h>

#include "../lib/tap.h"
#include "unwind/builder.h"
#include "unwind/compile.h"

/* ---- blocks ---- */

#define START	0x1000

/* A block with one function and one rule, of three steps, from @base + START on. */
static struct kb_unwind_header *make_block(uint64_t base)
{
	const struct kb_unwind_step rule[] = {
		{ .what = KB_UNWIND_RULE, .target = 16, .count = 3 },
		{ .what = KB_UNWIND_CFA_BASE, .base = 7, .offset = 8 },
		{ .what = KB_UNWIND_AT, .target = 16, .offset = -8 },
		{ .what = KB_UNWIND_AT, .target = 3, .offset = -16 },
	};
	struct kb_unwind_builder builder;
	struct kb_unwind_rows rows = { 0 };

	if (!kb_unwind_builder_init(&builder, kb_unwind_machine(EM_X86_64, 8), base))
		return NULL;
	kb_unwind_builder_row(&builder, base + START, kb_unwind_builder_rule(&builder, rule),
			      true);
	kb_unwind_builder_row(&builder, base + START + 16, KB_UNWIND_UNCOVERED, false);
	kb_unwind_builder_finish(&builder, &rows);
	kb_unwind_builder_release(&builder);
	return (struct kb_unwind_header *)rows.header;
}

/* What kb_unwind_rows_take() says of @block, whose checksum is made right. */
static int take(struct kb_unwind_header *block)
{
	struct kb_unwind_rows rows;

	block->crc = kb_unwind_block_crc(block);
	return kb_unwind_rows_take(&rows, block, block->size, NULL);
}

/* The last step of the rule of make_block(). */
static struct kb_unwind_step *last_step(struct kb_unwind_header *block)
{
	return (struct kb_unwind_step *)((char *)block + block->size) - 1;
}

/* The same for a block whose last step is @step. */
static int take_with(struct kb_unwind_step step)
{
	struct kb_unwind_header *block = make_block(0);
	int ret;

	*last_step(block) = step;
	ret = take(block);
	free(block);
	return ret;
}

static void a_block_is_taken_as_it_was_made(void)
{
	struct kb_unwind_header *block = make_block(0);

	tap_is(take(block), 0, "a_block_is_taken_as_it_was_made");
	free(block);
	block = make_block(UINT64_MAX - START - 16);
	tap_is(take(block), 0, "a_block_at_the_end_of_the_address_space_is_taken");
	free(block);
}

static void a_byte_that_changed_is_found(void)
{
	struct kb_unwind_header *block = make_block(0);
	uint64_t size = block->size, found = 0;
	struct kb_unwind_rows rows;

	for (uint64_t i = 0; i < size; i++) {
		((uint8_t *)block)[i] ^= 4;
		found += kb_unwind_rows_take(&rows, block, size, NULL) != 0;
		((uint8_t *)block)[i] ^= 4;
	}
	tap_is(found, size, "a_byte_that_changed_is_found");
	found = 0;
	for (uint64_t i = 0; i < size; i++)
		found += kb_unwind_rows_take(&rows, block, i, NULL) == -EBADMSG;
	tap_is(found, size, "a_block_that_was_cut_off_is_refused");
	free(block);
}

static void steps_that_leave_the_registers_are_refused(void)
{
	tap_is(take_with((struct kb_unwind_step) { KB_UNWIND_AT, 33, 0, 0, 0 }), -EBADMSG,
	       "a_step_to_no_register_is_refused");
	tap_is(take_with((struct kb_unwind_step) { KB_UNWIND_AT_BASE, 3, 33, 0, 0 }), -EBADMSG,
	       "a_step_from_no_register_is_refused");
	tap_is(take_with((struct kb_unwind_step) { KB_UNWIND_CFA_PLT, 255, 15, 3, 0 }), -EBADMSG,
	       "a_step_to_the_cfa_behind_a_register_is_refused");
	tap_is(take_with((struct kb_unwind_step) { KB_UNWIND_WHATS, 3, 0, 0, 0 }), -EBADMSG,
	       "a_step_of_an_unknown_kind_is_refused");
	tap_is(take_with((struct kb_unwind_step) { KB_UNWIND_CFA_BASE, 0, 7, 0, 0 }), -EBADMSG,
	       "a_second_base_is_refused");
}

static void rows_that_leave_the_address_space_are_refused(void)
{
	struct kb_unwind_header *block = make_block(0);

	block->base = UINT64_MAX - START - 15;
	tap_is(take(block), -EBADMSG, "rows_that_leave_the_address_space_are_refused");
	free(block);
}

static void counts_that_leave_the_block_are_refused(void)
{
	static const uint32_t counts[] = { 1, 0x100, 0x10000, UINT32_MAX };
	unsigned int refused = 0;

	for (unsigned int i = 0; i < 4; i++)
		for (unsigned int j = 0; j < 3; j++) {
			struct kb_unwind_header *block = make_block(0);
			uint32_t *count = j == 0 ? &block->nr_rows : j == 1 ? &block->nr_rules :
				&block->nr_steps;

			*count += counts[i];
			refused += take(block) == -EBADMSG;
			free(block);
		}
	tap_is(refused, 12, "counts_that_leave_the_block_are_refused");
}

/* ---- tables ---- */

#define CODE	0x100000	/* functions are here */

/* An .eh_frame at address 0, little endian. */
struct table {
	uint8_t data[8192];
	size_t size;
};

static void put(struct table *table, const void *bytes, size_t size)
{
	memcpy(table->data + table->size, bytes, size);
	table->size += size;
}

static void put32(struct table *table, uint32_t value)
{
	for (unsigned int i = 0; i < 4; i++)
		table->data[table->size++] = value >> 8 * i;
}

/* A CIE of amd64 with @padding instructions that do nothing. */
static void put_cie(struct table *table, uint32_t padding)
{
	/* version 1, "zR", factors 1 and -8, ra 16, one byte: absolute, 4 bytes */
	static const uint8_t body[] = { 1, 'z', 'R', 0, 1, 0x78, 16, 1, 3 };
	/* the CFA is rsp + 8, the return address is there */
	static const uint8_t code[] = { 0x0c, 7, 8, 0x90, 1 };

	put32(table, 4 + sizeof(body) + sizeof(code) + padding);
	put32(table, 0);
	put(table, body, sizeof(body));
	put(table, code, sizeof(code));
	memset(table->data + table->size, 0, padding);
	table->size += padding;
}

/* The function @number, of 16 bytes, whose CIE is at @cie. */
static void put_fde(struct table *table, size_t cie, unsigned int number)
{
	put32(table, 4 + 8 + 1);
	put32(table, table->size - cie);
	put32(table, CODE + 16 * number);
	put32(table, 16);
	put(table, "", 1);
}

/* Make rows of the first @size bytes of @table. */
static int compile(struct kb_unwind_rows *rows, const struct table *table, size_t size)
{
	struct kb_unwind_sections sections = {
		.elf = EM_X86_64, .word = 8, .low = CODE, .high = CODE + 0x10000,
	};
	uint8_t *copy = malloc(size + !size);	/* a sanitizer sees what is read behind it */
	int ret;

	memcpy(copy, table->data, size);
	sections.frames[0].section = (struct kb_unwind_section) { .data = copy, .size = size };
	*rows = (struct kb_unwind_rows) { 0 };
	ret = kb_unwind_compile(rows, &sections, NULL);
	free(copy);
	return ret;
}

static bool has_rule(const struct kb_unwind_rows *rows, unsigned int number)
{
	return rows->header &&
	       kb_unwind_rule_at(rows, CODE + 16 * number)->what == KB_UNWIND_RULE;
}

static void a_table_that_is_cut_off_has_what_is_whole(void)
{
	struct table table = { 0 };
	unsigned int bad = 0;
	size_t whole;

	put_cie(&table, 3);
	put_fde(&table, 0, 0);
	whole = table.size;
	put_fde(&table, 0, 1);
	for (size_t size = 0; size <= table.size; size++) {
		struct kb_unwind_rows rows;

		compile(&rows, &table, size);
		bad += has_rule(&rows, 0) != (size >= whole) ||
		       has_rule(&rows, 1) != (size == table.size);
		kb_unwind_rows_release(&rows);
	}
	tap_is(bad, 0, "a_table_that_is_cut_off_has_what_is_whole");
}

static void a_common_part_has_a_limit(void)
{
	struct table table = { 0 };
	struct kb_unwind_rows rows;

	put_cie(&table, 900);
	put_fde(&table, 0, 0);
	put_cie(&table, 2000);
	put_fde(&table, table.size - 2022, 1);
	tap_is(compile(&rows, &table, table.size), -EBADMSG, "a_large_common_part_is_damage");
	tap_ok(has_rule(&rows, 0) && !has_rule(&rows, 1), "a_common_part_has_a_limit");
	kb_unwind_rows_release(&rows);
}

/* Else a file that is full of both makes the search for one a search through all. */
static void a_common_part_is_not_looked_for_behind_empty_entries(void)
{
	struct table table = { 0 };
	struct kb_unwind_rows rows;
	size_t cie;

	for (unsigned int i = 0; i < 1000; i++)
		put32(&table, 0);
	cie = table.size;
	put_cie(&table, 3);
	put_fde(&table, cie, 0);
	put_fde(&table, 4, 1);
	compile(&rows, &table, table.size);
	tap_ok(has_rule(&rows, 0) && !has_rule(&rows, 1),
	       "a_common_part_is_not_looked_for_behind_empty_entries");
	kb_unwind_rows_release(&rows);
}

int main(void)
{
	a_block_is_taken_as_it_was_made();
	a_byte_that_changed_is_found();
	steps_that_leave_the_registers_are_refused();
	rows_that_leave_the_address_space_are_refused();
	counts_that_leave_the_block_are_refused();
	a_table_that_is_cut_off_has_what_is_whole();
	a_common_part_has_a_limit();
	a_common_part_is_not_looked_for_behind_empty_entries();
	return tap_done();
}
