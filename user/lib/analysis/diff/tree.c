// SPDX-License-Identifier: MIT
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/diff/tree.h"
#include "base/tree_order.h"

static void take_places(const struct kb_diff_table *table, const struct kb_diff *diff,
			struct kb_diff_node *nodes)
{
	for (uint32_t i = 0; i < table->places.nr; i++) {
		const struct kb_diff_place *place = kb_table_row(&table->places, i);

		nodes[i].name = place->name;
		nodes[i].image = place->image;
		nodes[i].kernel = place->kernel;
		nodes[i].parent = place->parent;
		nodes[i].depth = place->depth;
		for (int side = 0; side < 2; side++) {
			nodes[i].cpu[side] = place->rest[0][side] / diff->sides[side].captures;
			nodes[i].wait[side] = place->rest[1][side] / diff->sides[side].captures;
		}
	}
}

static void take_rows(const struct kb_diff_row *rows, uint32_t nr, struct kb_diff_node *nodes)
{
	for (uint32_t i = 0; i < nr; i++) {
		struct kb_diff_node *node = &nodes[rows[i].node];
		bool waits = rows[i].measure == KB_DIFF_WAIT;
		double *values = waits ? node->wait : node->cpu;

		if (rows[i].by != KB_DIFF_CHAIN)
			continue;
		values[0] += rows[i].a;
		values[1] += rows[i].b;
		*(waits ? &node->wait_row : &node->cpu_row) = i + 1;
	}
}

static void add_up(struct kb_diff_node *nodes, uint32_t nr)
{
	for (uint32_t i = nr; i-- > 0;) {
		struct kb_diff_node *node = &nodes[i], *parent = &nodes[node->parent];

		for (int side = 0; side < 2; side++) {
			node->cpu_total[side] += node->cpu[side];
			node->wait_total[side] += node->wait[side];
			if (!i)
				continue;
			parent->cpu_total[side] += node->cpu_total[side];
			parent->wait_total[side] += node->wait_total[side];
		}
	}
}

static int compare(const void *left, const void *right, void *context)
{
	const struct kb_diff_node *nodes = context;
	uint32_t i = *(const uint32_t *)left, j = *(const uint32_t *)right;
	const struct kb_diff_node *a = &nodes[i], *b = &nodes[j];
	int order = strcmp(a->name, b->name);

	order = order ? order : strcmp(a->image, b->image);
	return order ? order : (i > j) - (i < j);
}

static uint32_t *make_order(const struct kb_diff_node *nodes, uint32_t nr)
{
	uint32_t *parents = calloc(nr, sizeof(*parents)), *order = NULL;

	for (uint32_t i = 0; parents && i < nr; i++)
		parents[i] = nodes[i].parent;
	if (parents)
		order = kb_tree_order(parents, nr, compare, (void *)nodes);
	free(parents);
	return order;
}

int kb_diff_tree(const struct kb_diff_table *table, const struct kb_diff *diff,
		 struct kb_diff_node **nodes, uint32_t **order)
{
	uint32_t places = table->places.nr;

	*nodes = calloc(places, sizeof(**nodes));
	if (!*nodes)
		return -ENOMEM;
	take_places(table, diff, *nodes);
	take_rows(diff->rows, diff->nr, *nodes);
	add_up(*nodes, places);
	*order = make_order(*nodes, places);
	return *order ? 0 : -ENOMEM;
}
