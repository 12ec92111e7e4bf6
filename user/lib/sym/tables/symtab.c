// SPDX-License-Identifier: MIT
/*
 * Sorts and searches symbols. Sorted symbols are split into pieces that do not overlap,
 * including gaps. So a search looks for one key and needs no sizes. Buckets of equal width
 * shorten the search. Time is O(n log n) and memory O(n) for any input.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "sym/tables/symtab.h"

#define PAGE	4096U
#define NOBODY	UINT32_MAX

static int reserve_symbol(struct kb_symtab *symtab)
{
	if (symtab->nr_symbols >= KB_SYMTAB_MAX)
		return -EFBIG;
	return KB_ARRAY_ROOM(symtab->symbols, symtab->max_symbols, symtab->nr_symbols + 1) ?
	       0 : -ENOMEM;
}

static int reserve_name(struct kb_symtab *symtab, size_t length)
{
	if (length >= UINT32_MAX - symtab->names_length)
		return -EFBIG;
	return KB_ARRAY_ROOM(symtab->names, symtab->names_max,
			     symtab->names_length + length + 1) ? 0 : -ENOMEM;
}

int kb_symtab_add(struct kb_symtab *symtab, uint64_t start, uint64_t size, uint64_t limit,
		  const char *name, size_t length, enum kb_symtab_rank rank, uint32_t group)
{
	struct kb_symtab_symbol *symbol;
	int ret;

	if (start == UINT64_MAX)	/* not even one byte fits */
		return 0;
	ret = reserve_symbol(symtab);
	if (!ret)
		ret = reserve_name(symtab, length);
	if (ret)
		return ret;

	symbol = &symtab->symbols[symtab->nr_symbols++];
	*symbol = (struct kb_symtab_symbol) {
		.start = start,
		.name = symtab->names_length,
		.group = group,
		.id = KB_SYMTAB_NO_ID,
		.rank = rank,
		.open = size == 0,
	};
	if (size == 0)
		symbol->size = limit;
	else if (limit > start && size > limit - start)
		symbol->size = limit - start;
	else if (size > UINT64_MAX - start)
		symbol->size = UINT64_MAX - start;
	else
		symbol->size = size;

	memcpy(symtab->names + symtab->names_length, name, length);
	symtab->names_length += length;
	symtab->names[symtab->names_length++] = '\0';
	return 0;
}

int kb_symtab_append(struct kb_symtab *symtab, const struct kb_symtab *more)
{
	uint32_t i;
	int ret = 0;

	for (i = 0; i < more->nr_symbols && !ret; i++) {
		const struct kb_symtab_symbol *symbol = &more->symbols[i];
		const char *name = kb_symtab_name(more, symbol);

		ret = kb_symtab_add(symtab, symbol->start, symbol->open ? 0 : symbol->size,
				    symbol->open ? symbol->size : KB_SYMTAB_NO_LIMIT, name,
				    strlen(name), symbol->rank, symbol->group);
	}
	return ret;
}

/*
 * Which of two names for one address is better: < 0 for @a. A symbol with a size is better than
 * a label. Then the binding counts, then, as in perf, fewer leading underscores, then the
 * longer name.
 */
static int better(const struct kb_symtab_symbol *a, const struct kb_symtab_symbol *b,
		  const char *names)
{
	const char *name_a = names + a->name, *name_b = names + b->name;
	size_t length_a, length_b;

	if ((a->rank == KB_RANK_BOUNDARY) != (b->rank == KB_RANK_BOUNDARY))
		return a->rank == KB_RANK_BOUNDARY ? 1 : -1;
	if (a->open != b->open)
		return a->open ? 1 : -1;
	if (a->rank != b->rank)
		return a->rank > b->rank ? -1 : 1;

	length_a = strspn(name_a, "_");
	length_b = strspn(name_b, "_");
	if (length_a != length_b)
		return length_a < length_b ? -1 : 1;
	length_a = strlen(name_a);
	length_b = strlen(name_b);
	if (length_a != length_b)
		return length_a > length_b ? -1 : 1;
	return strcmp(name_a, name_b);
}

static int compare(const void *left, const void *right, void *names)
{
	const struct kb_symtab_symbol *a = left, *b = right;

	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	return better(a, b, names);
}

/* Keep the best symbol of each address. Its size is the largest of those that have one. */
static void drop_aliases(struct kb_symtab *symtab)
{
	struct kb_symtab_symbol *symbols = symtab->symbols, *kept = NULL;
	uint32_t i, nr = 0;

	for (i = 0; i < symtab->nr_symbols; i++) {
		if (kept && kept->start == symbols[i].start) {
			if (!kept->open && !symbols[i].open && symbols[i].size > kept->size)
				kept->size = symbols[i].size;
			continue;
		}
		kept = &symbols[nr++];
		*kept = symbols[i];
	}
	symtab->nr_symbols = nr;
}

/* Where a symbol without a size ends; @next follows it, or is NULL. */
static uint64_t open_end(const struct kb_symtab_symbol *symbol,
			 const struct kb_symtab_symbol *next)
{
	uint64_t limit = symbol->size, end = limit;

	if (limit == KB_SYMTAB_NO_LIMIT && !(next && next->group == symbol->group)) {
		end = (symbol->start | (PAGE - 1));
		end += end != UINT64_MAX;
	}
	if (next && next->start < end)
		end = next->start;
	return end > symbol->start ? end : symbol->start + 1;
}

/* Give every symbol a size. A label inside a symbol with a size belongs to it and is removed. */
static void close_open(struct kb_symtab *symtab)
{
	struct kb_symtab_symbol *symbols = symtab->symbols;
	uint64_t covered = 0;
	uint32_t i, nr = 0;

	for (i = 0; i < symtab->nr_symbols; i++) {
		struct kb_symtab_symbol symbol = symbols[i];

		if (symbol.open) {
			if (symbol.start < covered)
				continue;
			symbol.size = open_end(&symbol, i + 1 < symtab->nr_symbols ?
						&symbols[i + 1] : NULL) - symbol.start;
		} else if (symbol.start + symbol.size > covered) {
			covered = symbol.start + symbol.size;
		}
		symbols[nr++] = symbol;
	}
	symtab->nr_symbols = nr;
}

static void add_piece(struct kb_symtab *symtab, uint64_t start, uint32_t owner)
{
	uint32_t nr = symtab->nr_pieces;

	if (nr && symtab->pieces[nr - 1].start == start)
		symtab->nr_pieces = --nr;	/* the last piece is empty */
	if (nr && symtab->pieces[nr - 1].owner == owner)
		return;
	symtab->pieces[nr] = (struct kb_symtab_piece) { start, owner, KB_SYMTAB_NO_ID };
	symtab->nr_pieces++;
}

static uint64_t end_of(const struct kb_symtab *symtab, uint32_t i)
{
	return symtab->symbols[i].start + symtab->symbols[i].size;
}

/*
 * Close the symbols on the stack that end at or before @until, and continue those around them.
 * Returns the new height of the stack.
 */
static uint32_t unwind(struct kb_symtab *symtab, const uint32_t *stack, uint32_t height,
		       uint64_t until)
{
	while (height && end_of(symtab, stack[height - 1]) <= until) {
		uint64_t end = end_of(symtab, stack[--height]);
		uint32_t owner;

		while (height && end_of(symtab, stack[height - 1]) <= end)
			height--;
		owner = height ? stack[height - 1] : NOBODY;
		if (owner != NOBODY && symtab->symbols[owner].rank == KB_RANK_BOUNDARY)
			owner = NOBODY;
		add_piece(symtab, end, owner);
	}
	return height;
}

static int flatten(struct kb_symtab *symtab)
{
	uint32_t *stack, height = 0, i, nr = symtab->nr_symbols;

	stack = reallocarray(NULL, nr + 1, sizeof(*stack));
	symtab->pieces = reallocarray(NULL, 2 * (size_t)nr + 1, sizeof(*symtab->pieces));
	if (!stack || !symtab->pieces) {
		free(stack);
		return -ENOMEM;
	}
	for (i = 0; i < nr; i++) {
		const struct kb_symtab_symbol *symbol = &symtab->symbols[i];

		height = unwind(symtab, stack, height, symbol->start);
		add_piece(symtab, symbol->start, symbol->rank == KB_RANK_BOUNDARY ? NOBODY : i);
		stack[height++] = i;
	}
	unwind(symtab, stack, height, UINT64_MAX);
	free(stack);
	return 0;
}

/* Make buckets: one or two for each piece, on average. */
static int build_buckets(struct kb_symtab *symtab)
{
	uint32_t b, i, near = 0;
	uint64_t span;

	if (!symtab->nr_pieces)
		return 0;
	symtab->first = symtab->pieces[0].start;
	span = symtab->pieces[symtab->nr_pieces - 1].start - symtab->first;
	while (span >> symtab->bucket_shift >= 2 * (uint64_t)symtab->nr_pieces)
		symtab->bucket_shift++;
	symtab->nr_buckets = (span >> symtab->bucket_shift) + 1;
	symtab->buckets = reallocarray(NULL, symtab->nr_buckets + 1, sizeof(*symtab->buckets));
	if (!symtab->buckets)
		return -ENOMEM;

	for (b = 0, i = 0; b < symtab->nr_buckets; b++) {
		uint64_t from = symtab->first + ((uint64_t)b << symtab->bucket_shift);

		while (i + 1 < symtab->nr_pieces && symtab->pieces[i + 1].start <= from)
			i++;
		symtab->buckets[b].piece = i;
		if (symtab->pieces[i].owner != NOBODY)
			near = symtab->pieces[i].owner;
		symtab->buckets[b].near = near;
	}
	symtab->buckets[b].piece = symtab->nr_pieces - 1;
	return 0;
}

int kb_symtab_sort(struct kb_symtab *symtab)
{
	int ret;

	if (!symtab->nr_symbols)
		return 0;
	qsort_r(symtab->symbols, symtab->nr_symbols, sizeof(*symtab->symbols), compare,
		symtab->names);
	drop_aliases(symtab);
	close_open(symtab);
	ret = flatten(symtab);
	return ret ? ret : build_buckets(symtab);
}

int kb_symtab_take_pieces(struct kb_symtab *symtab, struct kb_symtab_piece *pieces, uint32_t nr)
{
	free(symtab->pieces);
	free(symtab->buckets);
	symtab->pieces = pieces;
	symtab->nr_pieces = nr;
	symtab->buckets = NULL;
	symtab->nr_buckets = 0;
	symtab->bucket_shift = 0;
	return build_buckets(symtab);
}

/* The bucket of @address, which is not below symtab->first. */
static const struct kb_symtab_bucket *bucket_of(const struct kb_symtab *symtab, uint64_t address)
{
	uint64_t bucket = (address - symtab->first) >> symtab->bucket_shift;

	if (bucket >= symtab->nr_buckets)
		bucket = symtab->nr_buckets - 1;
	return &symtab->buckets[bucket];
}

void kb_symtab_fetch_bucket(const struct kb_symtab *symtab, uint64_t address)
{
	if (symtab->nr_pieces && address >= symtab->first)
		__builtin_prefetch(bucket_of(symtab, address));
}

void kb_symtab_fetch_pieces(const struct kb_symtab *symtab, uint64_t address)
{
	const struct kb_symtab_bucket *bucket;

	if (!symtab->nr_pieces || address < symtab->first)
		return;
	bucket = bucket_of(symtab, address);
	__builtin_prefetch(&symtab->pieces[bucket->piece]);
}

/* The piece of @bucket with @address. */
static uint32_t piece_of(const struct kb_symtab *symtab, const struct kb_symtab_bucket *bucket,
			 uint64_t address)
{
	uint32_t low = bucket[0].piece, high = bucket[1].piece;

	while (low < high) {		/* the last start <= address is in [low, high] */
		uint32_t middle = high - (high - low) / 2;

		if (symtab->pieces[middle].start <= address)
			low = middle;
		else
			high = middle - 1;
	}
	return low;
}

uint32_t kb_symtab_find_id(const struct kb_symtab *symtab, uint64_t address)
{
	if (!symtab->nr_pieces || address < symtab->first)
		return KB_SYMTAB_NO_ID;
	return symtab->pieces[piece_of(symtab, bucket_of(symtab, address), address)].id;
}

void kb_symtab_note_id(struct kb_symtab *symtab, uint64_t address, uint32_t id)
{
	if (symtab->nr_pieces && address >= symtab->first)
		symtab->pieces[piece_of(symtab, bucket_of(symtab, address), address)].id = id;
}

void kb_symtab_find(const struct kb_symtab *symtab, uint64_t address, struct kb_symtab_hit *hit)
{
	uint32_t low, last = symtab->nr_pieces - 1;
	const struct kb_symtab_bucket *bucket;

	*hit = (struct kb_symtab_hit) { .high = UINT64_MAX };
	if (!symtab->nr_pieces)
		return;
	if (address < symtab->first) {
		hit->high = symtab->first - 1;
		return;
	}
	bucket = bucket_of(symtab, address);
	/* The symbol is needed next: prefetch it together with the pieces. */
	__builtin_prefetch(&symtab->symbols[bucket->near]);
	low = piece_of(symtab, bucket, address);
	hit->low = symtab->pieces[low].start;
	if (low < last)
		hit->high = symtab->pieces[low + 1].start - 1;
	if (symtab->pieces[low].owner != NOBODY)
		hit->symbol = &symtab->symbols[symtab->pieces[low].owner];
}

void kb_symtab_release(struct kb_symtab *symtab)
{
	free(symtab->symbols);
	free(symtab->names);
	free(symtab->pieces);
	free(symtab->buckets);
	*symtab = (struct kb_symtab) { 0 };
}
