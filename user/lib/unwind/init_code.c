// SPDX-License-Identifier: MIT
/* The end gives back, in the opposite order, what the beginning takes. */
#include <elf.h>
#include <string.h>

#include "unwind/init_code.h"

#define MAX_TAKEN	4U	/* instructions that take */
#define MAX_DEPTH	63U	/* bytes that one takes */
#define RBX		3U	/* of rbx and ebx: in instructions, and in tables */
#define RET		0xc3

/* An instruction that moves SP: by its byte after the opcode, or it is a push. */
struct taken {
	uint8_t size, depth;
	bool is_push;
};

/* The instruction at @at that takes of the stack; its size is 0 if there is none. */
static struct taken read_taken(const uint8_t *at, size_t size,
			       const struct kb_unwind_machine *machine)
{
	static const uint8_t sub[] = { 0x48, 0x83, 0xec };	/* i386 has no 0x48 */
	const size_t first = machine->word == 4, length = sizeof(sub) - first;

	if (size && *at >= 0x50 && *at < 0x58)
		return (struct taken) { .size = 1, .depth = machine->word, .is_push = true };
	if (size > length && memcmp(at, sub + first, length) == 0 && at[length] <= MAX_DEPTH)
		return (struct taken) { .size = (uint8_t)length + 1, .depth = at[length] };
	return (struct taken) { 0 };
}

/* Whether the instruction at @at gives back what @taken, which is at @from, has taken. */
static bool gives_back(const uint8_t *at, const uint8_t *from, const struct taken *taken)
{
	const size_t last = taken->size - 1U;

	if (taken->is_push)
		return *at == *from + 8;	/* pop */
	/* add: the opcode is the same, the byte after it says which operation it is */
	return memcmp(at, from, last - 1) == 0 && at[last - 1] == 0xc4 && at[last] == from[last];
}

unsigned int kb_unwind_init_rows(const struct kb_unwind_section *code,
				 const struct kb_unwind_machine *machine,
				 struct kb_unwind_init_row rows[KB_UNWIND_INIT_ROWS])
{
	static const uint8_t endbr[] = { 0xf3, 0x0f, 0x1e };
	struct taken taken[MAX_TAKEN];
	unsigned int nr = 0, nr_rows = 1;
	size_t at = 0, end = code->size;

	if ((machine->elf != EM_X86_64 && machine->elf != EM_386) || !end ||
	    code->data[--end] != RET)
		return 0;
	if (end > sizeof(endbr) && memcmp(code->data, endbr, sizeof(endbr)) == 0)
		at = sizeof(endbr) + 1;
	rows[0] = (struct kb_unwind_init_row) { 0 };
	for (;; nr++, nr_rows++) {
		const struct taken next = read_taken(code->data + at, end - at, machine);

		if (!next.size)
			break;
		if (nr == MAX_TAKEN)
			return 0;
		taken[nr] = next;
		rows[nr_rows] = rows[nr_rows - 1];
		rows[nr_rows].has_rbx |= !nr && code->data[at] == 0x50 + RBX;
		rows[nr_rows].depth += taken[nr].depth;
		at += taken[nr].size;
		rows[nr_rows].at = at;
	}
	/* The rows of the end are those of the beginning, from its last but one on. */
	for (unsigned int i = 0; i < nr; i++) {
		const struct kb_unwind_init_row *before = &rows[i];
		const size_t from = rows[i + 1].at - taken[i].size;

		if (end - at < taken[i].size ||
		    !gives_back(code->data + end - taken[i].size, code->data + from, &taken[i]))
			return 0;
		rows[2 * nr - i] = *before;
		rows[2 * nr - i].at = end;
		end -= taken[i].size;
	}
	return nr ? 2 * nr + 1 : 0;
}

void kb_unwind_init_rule(struct kb_unwind_rule *rule, const struct kb_unwind_machine *machine,
			 const struct kb_unwind_init_row *row)
{
	const uint8_t ra = machine->nr - 1U;

	kb_unwind_rule_begin(rule, ra, 0);
	kb_unwind_rule_step(rule, KB_UNWIND_CFA_BASE, 0, machine->sp, row->depth + machine->word);
	if (row->has_rbx)
		kb_unwind_rule_step(rule, KB_UNWIND_AT, RBX, 0, -2 * machine->word);
	kb_unwind_rule_step(rule, KB_UNWIND_AT, ra, 0, -machine->word);
}
