// SPDX-License-Identifier: MIT
/*
 * A segment tree over the distinct addresses where code begins or ends, as in maps.c: code is noted
 * in the O(log n) nodes that tile its range, in the order of time. All code that was ever at an
 * address is in the nodes from its leaf up to the root.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/bisect.h"
#include "sym/tables/jit.h"

#define MAX_ITEMS	(64U << 20)
#define NOBODY		UINT32_MAX

void kb_jit_release(struct kb_jit *jit)
{
	free(jit->codes);
	free(jit->lines);
	free(jit->files);
	free(jit->unwind);
	free(jit->bounds);
	free(jit->order);
	free(jit->starts);
	free(jit->items);
	*jit = (struct kb_jit) { 0 };
}

/* Keep @name, unless it is that of the row before. */
static int add_file(struct kb_jit *jit, const char *name, size_t length, uint32_t *file)
{
	const char *last;

	if (jit->nr_lines) {
		*file = jit->lines[jit->nr_lines - 1].file;
		last = jit->files + *file;
		if (strlen(last) == length && memcmp(last, name, length) == 0)
			return 0;
	}
	if (length >= KB_JIT_MAX_TEXT - jit->files_length)
		return -EFBIG;
	if (!KB_ARRAY_ROOM(jit->files, jit->files_max, jit->files_length + length + 1))
		return -ENOMEM;
	*file = jit->files_length;
	memcpy(jit->files + jit->files_length, name, length);
	jit->files[jit->files_length + length] = '\0';
	jit->files_length += length + 1;
	return 0;
}

int kb_jit_add_line(struct kb_jit *jit, uint32_t offset, uint32_t line, const char *name,
		    size_t length)
{
	uint32_t file;
	int ret;

	if (jit->nr_lines == KB_JIT_MAX_LINES)
		return -EFBIG;
	ret = add_file(jit, name, length, &file);
	if (ret)
		return ret;
	if (!KB_ARRAY_ROOM(jit->lines, jit->max_lines, jit->nr_lines + 1))
		return -ENOMEM;
	jit->lines[jit->nr_lines++] = (struct kb_jit_line) {
		.offset = offset, .line = line, .file = file,
	};
	return 0;
}

static int compare_numbers(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

	return (a > b) - (a < b);
}

static int compare_times(const void *left, const void *right, void *codes)
{
	uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
	const struct kb_jit_code *all = codes;

	if (all[a].since != all[b].since)
		return all[a].since < all[b].since ? -1 : 1;
	return (a > b) - (a < b);
}

static int compare_names(const void *left, const void *right, void *symbols)
{
	uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
	const struct kb_symtab *all = symbols;

	return strcmp(kb_symtab_name(all, &all->symbols[a]),
		      kb_symtab_name(all, &all->symbols[b])) ?: (a > b) - (a < b);
}

/* Needs order[], in any order. */
static void group_by_name(const struct kb_jit *jit, struct kb_symtab *symbols)
{
	uint32_t i, first = 0;

	qsort_r(jit->order, jit->nr_codes, sizeof(*jit->order), compare_names, symbols);
	for (i = 0; i < jit->nr_codes; i++) {
		struct kb_symtab_symbol *symbol = &symbols->symbols[jit->order[i]];

		if (!i || strcmp(kb_symtab_name(symbols, symbol),
				 kb_symtab_name(symbols, &symbols->symbols[first])) != 0)
			first = jit->order[i];
		symbol->group = first;
	}
}

static int order_codes(struct kb_jit *jit, struct kb_symtab *symbols)
{
	uint32_t i, nr = 0;

	jit->order = reallocarray(NULL, jit->nr_codes + 1, sizeof(*jit->order));
	jit->bounds = reallocarray(NULL, 2 * (size_t)jit->nr_codes + 1, sizeof(*jit->bounds));
	if (!jit->order || !jit->bounds)
		return -ENOMEM;
	for (i = 0; i < jit->nr_codes; i++) {
		jit->order[i] = i;
		jit->bounds[nr++] = symbols->symbols[i].start;
		jit->bounds[nr++] = symbols->symbols[i].start + symbols->symbols[i].size;
	}
	group_by_name(jit, symbols);
	qsort_r(jit->order, jit->nr_codes, sizeof(*jit->order), compare_times, jit->codes);
	qsort(jit->bounds, nr, sizeof(*jit->bounds), compare_numbers);
	for (i = jit->nr_leaves = 0; i < nr; i++)
		if (!i || jit->bounds[i] != jit->bounds[i - 1])
			jit->bounds[jit->nr_leaves++] = jit->bounds[i];
	return 0;
}

/* The last leaf that begins at or below @address, which is not below the first. */
static uint32_t leaf_of(const struct kb_jit *jit, uint64_t address)
{
	return KB_BISECT(i, 1, jit->nr_leaves, jit->bounds[i] <= address) - 1;
}

/* Note the code at @position of order[] in its nodes: count it only if there are no items yet. */
static uint32_t note(struct kb_jit *jit, const struct kb_symtab *symbols, uint32_t position)
{
	const struct kb_symtab_symbol *symbol = &symbols->symbols[jit->order[position]];
	uint32_t low = jit->nr_leaves + leaf_of(jit, symbol->start);
	uint32_t high = jit->nr_leaves + leaf_of(jit, symbol->start + symbol->size);
	uint32_t nodes[64], nr = 0, i;

	for (; low < high; low /= 2, high /= 2) {
		if (low & 1)
			nodes[nr++] = low++;
		if (high & 1)
			nodes[nr++] = --high;
	}
	for (i = 0; i < nr; i++) {
		if (jit->items)
			jit->items[jit->starts[nodes[i]]] = position;
		jit->starts[nodes[i]]++;
	}
	return nr;
}

static int make_index(struct kb_jit *jit, struct kb_symtab *symbols)
{
	uint32_t i, at = 0, nr, nodes;
	uint64_t all = 0;
	int ret = order_codes(jit, symbols);

	nodes = 2 * jit->nr_leaves;
	jit->starts = ret ? NULL : calloc((size_t)nodes + 1, sizeof(*jit->starts));
	if (!jit->starts)
		return -ENOMEM;
	for (i = 0; i < jit->nr_codes; i++)
		all += note(jit, symbols, i);
	if (all > MAX_ITEMS)
		return -EFBIG;
	for (i = 0; i < nodes; i++) {
		nr = jit->starts[i];
		jit->starts[i] = at;
		at += nr;
	}
	jit->items = reallocarray(NULL, all + 1, sizeof(*jit->items));
	if (!jit->items)
		return -ENOMEM;
	for (i = 0; i < jit->nr_codes; i++)
		note(jit, symbols, i);
	/* Each start has moved on to the next one. */
	for (i = nodes; i; i--)
		jit->starts[i] = jit->starts[i - 1];
	jit->starts[0] = 0;
	return 0;
}

int kb_jit_index(struct kb_jit *jit, struct kb_symtab *symbols)
{
	int ret = make_index(jit, symbols);

	if (ret)
		jit->nr_leaves = 0;	/* then nothing is found */
	return ret;
}

/* The number of items of a node that are not newer than @time. */
static uint32_t count_until(const struct kb_jit *jit, const uint32_t *items, uint32_t nr,
			    uint64_t time)
{
	return KB_BISECT(i, 0, nr, jit->codes[jit->order[items[i]]].since <= time);
}

/* The position in order[] of the code of @leaf at @time; NOBODY. *@all: how often it was used. */
static uint32_t position_at(const struct kb_jit *jit, uint32_t leaf, uint64_t time, uint64_t *all)
{
	uint32_t node, newest = NOBODY, next = NOBODY;

	*all = 0;
	for (node = jit->nr_leaves + leaf; node; node /= 2) {
		const uint32_t *items = jit->items + jit->starts[node];
		uint32_t nr = jit->starts[node + 1] - jit->starts[node];
		uint32_t old = count_until(jit, items, nr, time);

		*all += nr;
		if (old && (newest == NOBODY || items[old - 1] > newest))
			newest = items[old - 1];
		if (old < nr && items[old] < next)
			next = items[old];
	}
	return newest != NOBODY ? newest : next;
}

void kb_jit_find(const struct kb_jit *jit, const struct kb_symtab *symbols, uint64_t address,
		 uint64_t time, struct kb_jit_hit *hit)
{
	uint32_t leaf, position;
	uint64_t all;

	*hit = (struct kb_jit_hit) { .high = UINT64_MAX, .always = true };
	if (!jit->nr_leaves)
		return;
	if (address < jit->bounds[0]) {
		hit->high = jit->bounds[0] - 1;
		return;
	}
	leaf = leaf_of(jit, address);
	hit->low = jit->bounds[leaf];
	if (leaf + 1 < jit->nr_leaves)
		hit->high = jit->bounds[leaf + 1] - 1;
	position = position_at(jit, leaf, time, &all);
	if (position == NOBODY)
		return;
	hit->code = &jit->codes[jit->order[position]];
	hit->always = all == 1 && hit->code->until == KB_JIT_FOREVER;
	if (hit->code->until == KB_JIT_FOREVER || time < hit->code->until)
		hit->symbol = &symbols->symbols[jit->order[position]];
	else
		hit->code = NULL;
}

const struct kb_jit_line *kb_jit_line_at(const struct kb_jit *jit, const struct kb_jit_code *code,
					 uint64_t offset)
{
	const struct kb_jit_line *found = NULL;
	uint32_t i;

	for (i = code->first_line; i < code->first_line + code->nr_lines; i++) {
		const struct kb_jit_line *row = &jit->lines[i];

		if (row->offset <= offset && (!found || row->offset >= found->offset))
			found = row;
	}
	return found;
}
