/* SPDX-License-Identifier: MIT */
/*
 * Unwind rows of a file: from an address on, how the caller's registers are found. Addresses are
 * the virtual ones of the ELF file. Rows are sorted; each holds up to the next one, and refers
 * to a rule, which many rows share. A rule is a header and steps.
 *
 * All of it is one block of memory without pointers, so that a cache can keep it. Its integers
 * have the byte order of the machine that made it. A block from a file is checked before it is
 * used: kb_unwind_rows_take().
 */
#ifndef KB_LIB_UNWIND_ROWS_H
#define KB_LIB_UNWIND_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <kbarman/error.h>

#include "unwind/machine.h"

/* Why an address has no rule. The order is that of kb_unwind_reason_text(). */
enum kb_unwind_reason {
	KB_UNWIND_UNCOVERED,	/* no function that the tables describe */
	KB_UNWIND_CANTUNWIND,	/* the table says that there is no caller to be found */
	KB_UNWIND_EXPRESSION,	/* an expression of another form than those of rules */
	KB_UNWIND_WIDE,		/* an offset of more than 31 bits, or a register without a number */
	KB_UNWIND_DAMAGED,	/* the instructions can't be read */
	KB_UNWIND_TOO_MANY,	/* the table is full of other rules */
	KB_UNWIND_REASONS,
};

enum kb_unwind_what {
	/* The header of a rule, and of an address that has none. */
	KB_UNWIND_RULE,		/* target: the register with the caller's address; base: flags;
				 * count: steps after */
	KB_UNWIND_NO_RULE,	/* offset: the reason; count: 0 */

	/* The steps to the CFA, in this order. The first one is always CFA_BASE. */
	KB_UNWIND_CFA_BASE,	/* cfa = base + offset */
	KB_UNWIND_CFA_INDEX,	/* cfa += base * count */
	KB_UNWIND_CFA_LOAD,	/* cfa = word at cfa, + offset */
	KB_UNWIND_CFA_PLT,	/* cfa += ((pc & base) >= target) << count */

	/* Then those to the caller's registers. One without a step keeps its value. */
	KB_UNWIND_AT,		/* target = word at cfa + offset */
	KB_UNWIND_VALUE,	/* target = cfa + offset */
	KB_UNWIND_AT_BASE,	/* target = word at base + offset */
	KB_UNWIND_VALUE_BASE,	/* target = base + offset */
	KB_UNWIND_UNDEFINED,	/* target has no value; as return address: the outermost frame */
	KB_UNWIND_LOST,		/* target has a value, but its rule can't be expressed */
	KB_UNWIND_WHATS,
};

#define KB_UNWIND_SIGNAL	1U	/* flag: the caller was interrupted, it did not call */
#define KB_UNWIND_SIGNED	2U	/* flag: the return address has a signature */

struct kb_unwind_step {
	uint8_t what, target, base, count;
	int32_t offset;
};

#define KB_UNWIND_MAX_STEPS	48U	/* of a rule, with its header */

#define KB_UNWIND_MAGIC		"kbunwind"
#define KB_UNWIND_VERSION	3U	/* of the layout and of what the compiler makes */

struct kb_unwind_header {
	char magic[8];
	uint32_t version;
	uint32_t crc;		/* CRC-32 of everything after this member */
	uint64_t size;		/* bytes of the block */
	uint64_t base;		/* address from which rows count */
	uint16_t elf, word;	/* which machine: kb_unwind_machine() */
	uint32_t nr_rows, nr_rules, nr_steps;
};

#define KB_UNWIND_FUNCTION	0x8000U	/* in the number of a rule: a function begins at the row */
#define KB_UNWIND_MAX_RULES	0x8000U

struct kb_unwind_rows {
	const struct kb_unwind_machine *machine;
	const struct kb_unwind_header *header;	/* the block */
	const uint32_t *starts;			/* sorted, from header->base on */
	const uint32_t *rules;			/* number of the header in steps, for each rule */
	const uint16_t *rule_of;		/* for each row, with KB_UNWIND_FUNCTION */
	const struct kb_unwind_step *steps;
};

/* Bytes of a block. */
uint64_t kb_unwind_block_size(uint32_t nr_rows, uint32_t nr_rules, uint32_t nr_steps);

/* Set the pointers of @rows into @block, whose header has the right numbers. */
void kb_unwind_rows_point(struct kb_unwind_rows *rows, const void *block);

/* The checksum that belongs into the header of @block. */
uint32_t kb_unwind_block_crc(const void *block);

/*
 * Use @block, which malloc() made, of @size bytes from a file. Everything that a look-up or the
 * walker relies on is checked. On success it belongs to @rows. Returns 0; -EPROTO: another version
 * wrote it; -EBADMSG: it is damaged, with the offset of the damage in @err.
 */
int kb_unwind_rows_take(struct kb_unwind_rows *rows, void *block, size_t size,
			struct kb_error *err);

void kb_unwind_rows_release(struct kb_unwind_rows *rows);

/*
 * The header of the rule at @address, which its steps follow. There always is one: for addresses
 * that no row covers it has no rule and says so.
 */
const struct kb_unwind_step *kb_unwind_rule_at(const struct kb_unwind_rows *rows,
					       uint64_t address);

/* Where the function at @address begins and ends, as the tables know it; false: in none. */
struct kb_unwind_bounds {
	uint64_t start, end;
};

bool kb_unwind_function_at(const struct kb_unwind_rows *rows, uint64_t address,
			   struct kb_unwind_bounds *bounds);

/* A few words for @reason. */
const char *kb_unwind_reason_text(enum kb_unwind_reason reason);

#endif
