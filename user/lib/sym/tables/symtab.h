/* SPDX-License-Identifier: MIT */
/*
 * sym/tables/: names by address, wherever they come from: tables of symbols (symtab.h), code of JIT
 * compilers by time (jit.h), the kernel's list (kallsyms.h), and all that is known of one ELF file
 * (elf_data.h).
 *
 * A symbol table: from addresses to names. Add symbols in any order, then call kb_symtab_sort()
 * once to make the table searchable. A search takes two dependent loads and a few comparisons.
 *
 * Of several symbols at one address the most readable name is kept (see better() in symtab.c).
 * Where symbols overlap, the one that begins last counts up to its end; then the one around it
 * continues.
 */
#ifndef KB_LIB_SYM_TABLES_SYMTAB_H
#define KB_LIB_SYM_TABLES_SYMTAB_H

#include <stddef.h>
#include <stdint.h>

#define KB_SYMTAB_NO_ID		UINT32_MAX
#define KB_SYMTAB_NO_LIMIT	UINT64_MAX
#define KB_SYMTAB_MAX		(16U << 20)	/* symbols; larger inputs are refused */

/* Binding of a symbol; a higher one is preferred. */
enum kb_symtab_rank {
	KB_RANK_BOUNDARY,	/* ends the previous symbol, gives no name */
	KB_RANK_NAMELESS,	/* a function whose name is made of its address */
	KB_RANK_LOCAL,
	KB_RANK_WEAK,
	KB_RANK_GLOBAL,
};

struct kb_symtab_symbol {
	uint64_t start;
	uint64_t size;		/* before sorting, if `open`: the limit */
	uint32_t name;		/* offset in names */
	uint32_t group;		/* as added */
	uint32_t id;		/* set by the symbolizer; KB_SYMTAB_NO_ID before */
	uint8_t rank;		/* enum kb_symtab_rank */
	uint8_t open;		/* added without a size */
};

/* Addresses from @start to the start of the next piece belong to symbol @owner. */
struct kb_symtab_piece {
	uint64_t start;
	uint32_t owner;			/* UINT32_MAX: no symbol */
	uint32_t id;			/* of the answer: kb_symtab_note_id() */
};

struct kb_symtab {
	struct kb_symtab_symbol *symbols;	/* ordered by start after sorting */
	uint32_t nr_symbols;
	uint32_t max_symbols;
	char *names;
	size_t names_length, names_max;

	struct kb_symtab_piece *pieces;	/* once sorted */
	uint32_t nr_pieces;
	uint64_t first;			/* start of the first piece */
	struct kb_symtab_bucket {
		uint32_t piece;		/* the piece in which the bucket begins, */
		uint32_t near;		/* and a symbol near those of the bucket */
	} *buckets;
	unsigned int bucket_shift;	/* of (address - first) */
	uint32_t nr_buckets;
};

/*
 * Add a symbol. Its name, @length bytes at @name, is copied. A symbol without @size extends to
 * the next symbol of its @group, but not beyond @limit. With KB_SYMTAB_NO_LIMIT the last symbol
 * of a group extends to the end of its page. Returns 0, -ENOMEM, or -EFBIG with KB_SYMTAB_MAX
 * symbols.
 */
int kb_symtab_add(struct kb_symtab *symtab, uint64_t start, uint64_t size, uint64_t limit,
		  const char *name, size_t length, enum kb_symtab_rank rank, uint32_t group);

/* Add all symbols of @more, which is not sorted. Returns 0, -ENOMEM or -EFBIG. */
int kb_symtab_append(struct kb_symtab *symtab, const struct kb_symtab *more);

/* Returns 0 or -ENOMEM. Nothing can be added afterwards. */
int kb_symtab_sort(struct kb_symtab *symtab);

/*
 * Search in @pieces, @nr of them, instead of those that sorting made. They belong to the table
 * from then on, also after an error. Returns 0 or -ENOMEM.
 */
int kb_symtab_take_pieces(struct kb_symtab *symtab, struct kb_symtab_piece *pieces, uint32_t nr);

/* The answer is the same for all addresses within these inclusive limits. */
struct kb_symtab_hit {
	struct kb_symtab_symbol *symbol;	/* NULL: no symbol */
	uint64_t low, high;
};

void kb_symtab_find(const struct kb_symtab *symtab, uint64_t address, struct kb_symtab_hit *hit);

/*
 * The id that was noted for the answer at @address; KB_SYMTAB_NO_ID: none. This reads less memory
 * than kb_symtab_find(), and that is what takes time where many symbols are asked for in turn.
 */
uint32_t kb_symtab_find_id(const struct kb_symtab *symtab, uint64_t address);

/* Note @id for all addresses that have the same answer as @address. */
void kb_symtab_note_id(struct kb_symtab *symtab, uint64_t address, uint32_t id);

/*
 * Prefetch for an address whose id will be asked for later: first its bucket, and when that has
 * arrived, the pieces.
 */
void kb_symtab_fetch_bucket(const struct kb_symtab *symtab, uint64_t address);
void kb_symtab_fetch_pieces(const struct kb_symtab *symtab, uint64_t address);

static inline const char *kb_symtab_name(const struct kb_symtab *symtab,
					 const struct kb_symtab_symbol *symbol)
{
	return symtab->names + symbol->name;
}

/* Free the content of the table and make the table empty. */
void kb_symtab_release(struct kb_symtab *symtab);

#endif
