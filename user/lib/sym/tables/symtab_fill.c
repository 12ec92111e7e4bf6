// SPDX-License-Identifier: MIT
/*
 * Two sorted tables become one: at every address the second one counts only if the first one has
 * no symbol there. Both are sorted, so one pass over their pieces is enough.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sym/tables/symtab_fill.h"

#define NOBODY	UINT32_MAX

struct filler {
	struct kb_symtab *symtab;
	const struct kb_symtab *more;
	struct kb_text file;
	uint32_t *numbers;		/* of symbols of more in symtab; NOBODY: not there yet */
	struct kb_symtab_piece *pieces;
	uint32_t nr;
};

/* Add the symbol with the number @i of more, with a name. */
static int add_symbol(const struct filler *filler, uint32_t i)
{
	const struct kb_symtab_symbol *symbol = &filler->more->symbols[i];
	const char *name = kb_symtab_name(filler->more, symbol);
	char *made = NULL;
	int ret;

	if (!*name && asprintf(&made, "%.*s+0x%llx", (int)filler->file.length, filler->file.data,
			       (unsigned long long)symbol->start) < 0)
		return -ENOMEM;
	if (made)
		name = made;
	ret = kb_symtab_add(filler->symtab, symbol->start, symbol->size, KB_SYMTAB_NO_LIMIT, name,
			    strlen(name), symbol->rank, symbol->group);
	free(made);
	return ret;
}

/* Set *@owner, a number in more, to the number in symtab. */
static int renumber(const struct filler *filler, uint32_t *owner)
{
	uint32_t *number = &filler->numbers[*owner];
	int ret = 0;

	if (*number == NOBODY) {
		*number = filler->symtab->nr_symbols;
		ret = add_symbol(filler, *owner);
	}
	*owner = *number;
	return ret;
}

static void add_piece(struct filler *filler, uint64_t start, uint32_t owner)
{
	if (!filler->nr || filler->pieces[filler->nr - 1].owner != owner)
		filler->pieces[filler->nr++] = (struct kb_symtab_piece) {
			start, owner, KB_SYMTAB_NO_ID };
}

/* If piece *@i of @symtab begins at @start, take its owner and go on to the next one. */
static void step(const struct kb_symtab *symtab, uint32_t *i, uint64_t start, uint32_t *owner)
{
	if (*i < symtab->nr_pieces && symtab->pieces[*i].start == start)
		*owner = symtab->pieces[(*i)++].owner;
}

static uint64_t start_of(const struct kb_symtab *symtab, uint32_t i)
{
	return i < symtab->nr_pieces ? symtab->pieces[i].start : UINT64_MAX;
}

static int merge(struct filler *filler)
{
	const struct kb_symtab *symtab = filler->symtab, *more = filler->more;
	uint32_t i = 0, j = 0, first = NOBODY, second = NOBODY;
	int ret = 0;

	while (!ret && (i < symtab->nr_pieces || j < more->nr_pieces)) {
		uint64_t left = start_of(symtab, i), right = start_of(more, j);
		uint64_t start = left < right ? left : right;
		uint32_t owner;

		step(symtab, &i, start, &first);
		step(more, &j, start, &second);
		owner = first != NOBODY ? first : second;
		if (first == NOBODY && second != NOBODY)
			ret = renumber(filler, &owner);
		add_piece(filler, start, owner);
	}
	return ret;
}

static int allocate(struct filler *filler)
{
	const struct kb_symtab *symtab = filler->symtab, *more = filler->more;

	filler->numbers = reallocarray(NULL, more->nr_symbols, sizeof(*filler->numbers));
	filler->pieces = reallocarray(NULL, (size_t)symtab->nr_pieces + more->nr_pieces,
				      sizeof(*filler->pieces));
	if (!filler->numbers || !filler->pieces)
		return -ENOMEM;
	memset(filler->numbers, 0xff, more->nr_symbols * sizeof(*filler->numbers));
	return 0;
}

int kb_symtab_fill(struct kb_symtab *symtab, const struct kb_symtab *more, struct kb_text file)
{
	struct filler filler = { .symtab = symtab, .more = more, .file = file };
	int ret;

	if (!more->nr_pieces)
		return 0;
	ret = allocate(&filler);
	if (!ret)
		ret = merge(&filler);
	free(filler.numbers);
	if (ret) {
		free(filler.pieces);
		return ret;
	}
	return kb_symtab_take_pieces(symtab, filler.pieces, filler.nr);
}

bool kb_symtab_is_nameless(const char *name, uint64_t start, struct kb_text file)
{
	const char *address = name + file.length;
	char *end;

	if (strncmp(name, file.data, file.length) != 0 || strncmp(address, "+0x", 3) != 0)
		return false;
	errno = 0;
	return strtoull(address + 3, &end, 16) == start && !errno && !*end;
}
