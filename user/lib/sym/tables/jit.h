/* SPDX-License-Identifier: MIT */
/*
 * Code that a process made at run time, by address and time: a place may have one function now and
 * another one later. Code i has the range and the name of symbol i of a symbol table, which is not
 * sorted. Times are those of the dump, CLOCK_MONOTONIC in ns; they are 0 if the dump has none that
 * can be compared, and then the last code of the dump counts.
 */
#ifndef KB_LIB_SYM_TABLES_JIT_H
#define KB_LIB_SYM_TABLES_JIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sym/tables/symtab.h"

#define KB_JIT_FOREVER		UINT64_MAX
#define KB_JIT_MAX_CODES	(4U << 20)
#define KB_JIT_MAX_LINES	(16U << 20)
#define KB_JIT_MAX_TEXT		(256U << 20)	/* bytes of names; the same of source files */
#define KB_JIT_MAX_UNWIND	(256U << 20)	/* bytes of unwind rows */

struct kb_jit_code {
	uint64_t since;			/* it is at its place from then on */
	uint64_t until;			/* it was moved away then; KB_JIT_FOREVER: never */
	uint32_t first_line, nr_lines;	/* its rows of lines[] */
	uint32_t unwind, unwind_size;	/* its block (unwind/rows.h) in unwind[], whose addresses
					 * begin at 0 with the code; size 0: none */
};

/* From this offset in the code on, it belongs to this line. Rows have any order. */
struct kb_jit_line {
	uint32_t offset;
	uint32_t line;
	uint32_t file;			/* offset in files */
};

struct kb_jit {
	struct kb_jit_code *codes;
	uint32_t nr_codes, max_codes;
	struct kb_jit_line *lines;
	uint32_t nr_lines, max_lines;
	char *files;			/* strings, each with a zero after it */
	size_t files_length, files_max;
	char *unwind;			/* blocks, each a multiple of 8 bytes */
	size_t unwind_length, unwind_max;
	uint64_t end;			/* offset in the dump after what was read */

	/* Made by kb_jit_index(). */
	uint64_t *bounds;		/* sorted; leaf i is [bounds[i], bounds[i + 1]) */
	uint32_t nr_leaves;
	uint32_t *order;		/* codes by time */
	uint32_t *starts;		/* node n has items[starts[n]] to items[starts[n + 1]] */
	uint32_t *items;		/* positions in order[]: a larger one is newer code */
};

/* The answer is the same for all addresses within these inclusive limits, at that time. */
struct kb_jit_hit {
	struct kb_symtab_symbol *symbol;	/* NULL: no code is there */
	const struct kb_jit_code *code;
	uint64_t low, high;
	bool always;				/* and at all times */
};

/*
 * Add a row to lines[]. The name of its file, @length bytes at @name, is copied. Returns 0, -ENOMEM
 * or -EFBIG.
 */
int kb_jit_add_line(struct kb_jit *jit, uint32_t offset, uint32_t line, const char *name,
		    size_t length);

/*
 * Make @jit, whose codes are the @symbols, searchable. Nothing can be added afterwards. The group
 * of a symbol becomes the number of the first one of its name: code that was moved or compiled
 * again is the same function. Returns 0;
 * -ENOMEM; -EFBIG: so much code overlaps that the index would be too large.
 */
int kb_jit_index(struct kb_jit *jit, struct kb_symtab *symbols);

/*
 * Find the newest code at @address that is not newer than @time; if all of it is newer, the oldest.
 * It takes O(log^2 codes), whatever the codes are.
 */
void kb_jit_find(const struct kb_jit *jit, const struct kb_symtab *symbols, uint64_t address,
		 uint64_t time, struct kb_jit_hit *hit);

/* The row of @code for the byte at @offset; NULL: its line is not known. */
const struct kb_jit_line *kb_jit_line_at(const struct kb_jit *jit, const struct kb_jit_code *code,
					 uint64_t offset);

/* Free the content and make @jit empty. */
void kb_jit_release(struct kb_jit *jit);

#endif
