/* SPDX-License-Identifier: MIT */
/*
 * A symbol table: addresses to names, wherever the symbols come from. Symbols are
 * added in any order, kb_symtab_sort() makes the table searchable once and for
 * all, and a search costs two dependent loads and a look at a handful of keys.
 *
 * Of several symbols that begin at one address the one a person would name is
 * kept (see better() in symtab.c). Where symbols overlap, the one that begins
 * last wins as far as it goes, then the one around it goes on.
 */
#ifndef KBARMAN_SYM_SYMTAB_H
#define KBARMAN_SYM_SYMTAB_H

#include <stddef.h>
#include <stdint.h>

#define KB_SYMTAB_NO_ID		UINT32_MAX
#define KB_SYMTAB_NO_LIMIT	UINT64_MAX
#define KB_SYMTAB_MAX		(16U << 20)	/* symbols: an input with more is refused */

/* How a symbol is bound; a higher one is preferred. */
enum kb_symtab_rank {
	KB_RANK_BOUNDARY,	/* ends the symbol before it, has no name itself */
	KB_RANK_LOCAL,
	KB_RANK_WEAK,
	KB_RANK_GLOBAL,
};

struct kb_symtab_symbol {
	uint64_t start;
	uint64_t size;		/* before sorting, if `open`: the limit */
	uint32_t name;		/* offset in names */
	uint32_t group;		/* as added */
	uint32_t id;		/* the symbolizer's, KB_SYMTAB_NO_ID until it gives one */
	uint8_t rank;		/* enum kb_symtab_rank */
	uint8_t open;		/* added without a size */
};

/* Addresses from @start to the next piece's are all of symbol @owner. */
struct kb_symtab_piece {
	uint64_t start;
	uint32_t owner;			/* UINT32_MAX: no symbol is there */
};

struct kb_symtab {
	struct kb_symtab_symbol *symbols;	/* by start, once sorted */
	uint32_t nr_symbols;
	uint32_t max_symbols;
	char *names;
	size_t names_length, names_max;

	struct kb_symtab_piece *pieces;	/* once sorted */
	uint32_t nr_pieces;
	uint64_t first;			/* where the first piece starts */
	struct kb_symtab_bucket {
		uint32_t piece;		/* the bucket begins in it, ... */
		uint32_t near;		/* ... and its symbols are about this one */
	} *buckets;
	unsigned int bucket_shift;	/* of (address - first) */
	uint32_t nr_buckets;
};

/*
 * Add a symbol whose name is the @length bytes at @name; it is copied. A symbol
 * without a @size reaches to the next one of its @group, and never beyond @limit
 * (with KB_SYMTAB_NO_LIMIT: beyond the end of its page, where nothing of its
 * group follows). 0, -ENOMEM, or -EFBIG with KB_SYMTAB_MAX symbols.
 */
int kb_symtab_add(struct kb_symtab *symtab, uint64_t start, uint64_t size, uint64_t limit,
		  const char *name, size_t length, enum kb_symtab_rank rank, uint32_t group);

/* Add all symbols of @more, which was not sorted. 0, -ENOMEM or -EFBIG. */
int kb_symtab_append(struct kb_symtab *symtab, const struct kb_symtab *more);

/* 0 or -ENOMEM. Nothing can be added afterwards. */
int kb_symtab_sort(struct kb_symtab *symtab);

/* The same answer holds for all addresses between the inclusive limits. */
struct kb_symtab_hit {
	struct kb_symtab_symbol *symbol;	/* NULL: no symbol is there */
	uint64_t low, high;
};

void kb_symtab_find(const struct kb_symtab *symtab, uint64_t address, struct kb_symtab_hit *hit);

/*
 * For who knows early what will be asked: have its bucket come near; later, when that is there,
 * have the pieces and the symbol come.
 */
void kb_symtab_fetch_bucket(const struct kb_symtab *symtab, uint64_t address);
void kb_symtab_fetch_pieces(const struct kb_symtab *symtab, uint64_t address);

static inline const char *kb_symtab_name(const struct kb_symtab *symtab,
					 const struct kb_symtab_symbol *symbol)
{
	return symtab->names + symbol->name;
}

/* Free what the table holds, and make it an empty one. */
void kb_symtab_release(struct kb_symtab *symtab);

#endif
