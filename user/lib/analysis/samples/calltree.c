// SPDX-License-Identifier: MIT
/*
 * Nodes are rows of a hash table keyed by (parent, symbol), so adding a sample takes one
 * look-up for each frame. Siblings are ordered at the end, by one sort.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <kbarman/chain.h>

#include "analysis/facts/name_ids.h"
#include "analysis/samples/calltree.h"
#include "analysis/time/idle.h"
#include "base/table.h"
#include "base/tree_order.h"

struct kb_calltree {
	struct kb_name_ids comms;
	struct kb_table nodes;
	uint32_t *order;
	bool idle_apart;
};

#define TASK_KEY	(1ULL << 32)	/* flag of keys that are ids of names, not of symbols */
#define TEXT_KEY	(1ULL << 63)	/* flag of keys that are addresses of texts */

static struct kb_calltree_node *node_at(const struct kb_calltree *tree, uint32_t i)
{
	return kb_table_row(&tree->nodes, i);
}

/* The number of the child @key of @parent, which is created if it does not exist; -ENOMEM. */
static int64_t find_child(struct kb_calltree *tree, uint32_t parent, uint64_t key, bool *is_new)
{
	uint64_t keys[2] = { parent, key };
	uint32_t nr = tree->nodes.nr;
	struct kb_calltree_node *node = kb_table_get(&tree->nodes, keys);

	if (!node)
		return -ENOMEM;
	*is_new = tree->nodes.nr != nr;
	if (*is_new) {
		node->parent = parent;
		node->depth = node_at(tree, parent)->depth + 1;
	}
	return ((char *)node - tree->nodes.rows) / tree->nodes.row_size;
}

int kb_calltree_create(struct kb_calltree **out, const struct kb_tasks *tasks,
		       struct kb_error *err)
{
	struct kb_calltree *tree = calloc(1, sizeof(*tree));
	struct kb_calltree_node *root;

	if (!tree)
		goto err_memory;
	kb_name_ids_init(&tree->comms, tasks);
	kb_table_init(&tree->nodes, sizeof(struct kb_calltree_node), 2);
	root = kb_table_get(&tree->nodes, (uint64_t[]) { UINT64_MAX, UINT64_MAX });
	if (!root)
		goto err_memory;
	root->name = "all";
	root->image_base = "";
	*out = tree;
	return 0;

err_memory:
	kb_calltree_destroy(tree);
	return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
}

void kb_calltree_destroy(struct kb_calltree *tree)
{
	if (!tree)
		return;
	kb_name_ids_release(&tree->comms);
	kb_table_release(&tree->nodes);
	free(tree->order);
	free(tree);
}

static int64_t find_frame(struct kb_calltree *tree, uint32_t parent,
			  const struct kb_symbol *symbol)
{
	bool is_new;
	int64_t i = find_child(tree, parent, symbol->id, &is_new);

	if (i >= 0 && is_new) {
		node_at(tree, i)->name = symbol->name;
		node_at(tree, i)->image_base = symbol->image_base;
		node_at(tree, i)->kernel = symbol->kernel;
		node_at(tree, i)->inlined = symbol->inlined;
	}
	return i;
}

/* The nodes of the function at @pc and of the functions inlined there. */
static int64_t find_place(struct kb_calltree *tree, int64_t i, const struct kb_event *event,
			  uint32_t task_id, struct kb_symbolizer *symbolizer, uint64_t pc)
{
	const struct kb_frame *frames;
	uint32_t nr = kb_symbolizer_frames(symbolizer, task_id, event->timestamp, pc, &frames);

	while (nr-- && i >= 0)
		i = find_frame(tree, i, &frames[nr].symbol);
	return i;
}

int64_t kb_calltree_find(struct kb_calltree *tree, const struct kb_event *event,
			 uint32_t task_id, struct kb_symbolizer *symbolizer)
{
	const struct kb_name_id *comm = kb_name_ids_find(&tree->comms, task_id, event->timestamp);
	uint32_t frame = kb_chain_depth(event);
	bool is_new;
	int64_t i;

	if (!comm)
		return -ENOMEM;
	i = find_child(tree, KB_CALLTREE_ROOT, TASK_KEY | comm->id, &is_new);
	if (i < 0)
		return i;
	if (is_new) {
		node_at(tree, i)->name = comm->name;
		node_at(tree, i)->image_base = "";
	}
	if (frame > KB_CALLTREE_DEPTH)
		frame = KB_CALLTREE_DEPTH;
	while (frame-- && i >= 0)
		i = find_place(tree, i, event, task_id, symbolizer, kb_chain_lookup(event, frame));
	return i;
}

int64_t kb_calltree_find_text(struct kb_calltree *tree, uint32_t node, const char *text,
			      const char *image)
{
	bool is_new;
	int64_t i = find_child(tree, node, TEXT_KEY | (uintptr_t)text, &is_new);

	if (i >= 0 && is_new) {
		node_at(tree, i)->name = text;
		node_at(tree, i)->image_base = image;
	}
	return i;
}

void kb_calltree_weigh(struct kb_calltree *tree, uint32_t i, uint64_t weight)
{
	struct kb_calltree_node *node = node_at(tree, i);

	node->samples++;
	if (weight <= UINT64_MAX - node->self)
		node->self += weight;
	else
		node->unweighed++;
}

void kb_calltree_idle_apart(struct kb_calltree *tree)
{
	tree->idle_apart = true;
}

static bool is_idle(const struct kb_event *event, struct kb_symbolizer *symbolizer)
{
	return !event->task_id &&
	       kb_idle_symbol(kb_symbolizer_resolve(symbolizer, 0, event->timestamp,
						    event->sample.pc));
}

int kb_calltree_add(struct kb_calltree *tree, const struct kb_event *event,
		    struct kb_symbolizer *symbolizer)
{
	int64_t i = tree->idle_apart && is_idle(event, symbolizer) ?
		kb_calltree_find_text(tree, KB_CALLTREE_ROOT, KB_CALLTREE_IDLE, "") :
		kb_calltree_find(tree, event, event->task_id, symbolizer);

	if (i < 0)
		return i;
	if (event->sample.nr_counters && event->sample.counters[0] != KB_COUNTER_INVALID) {
		kb_calltree_weigh(tree, i, event->sample.counters[0]);
	} else {
		node_at(tree, i)->samples++;
		node_at(tree, i)->unweighed++;
	}
	return 0;
}

/* Compute own weights, and from them the totals. Children stand behind their parents. */
static void settle(struct kb_calltree *tree, bool count)
{
	uint64_t weight = 0, weighed = 0, mean;
	uint32_t i;

	for (i = 0; i < tree->nodes.nr; i++) {
		weight += node_at(tree, i)->self;
		weighed += node_at(tree, i)->samples - node_at(tree, i)->unweighed;
	}
	mean = weighed ? weight / weighed : 0;
	for (i = 0; i < tree->nodes.nr; i++) {
		struct kb_calltree_node *node = node_at(tree, i);

		node->self = count || !weight ? node->samples : node->self + mean * node->unweighed;
		node->total = node->self;
	}
	for (i = tree->nodes.nr; i-- > 1;)
		node_at(tree, node_at(tree, i)->parent)->total += node_at(tree, i)->total;
}

static int compare(const void *left, const void *right, void *context)
{
	const struct kb_calltree *tree = context;
	const struct kb_calltree_node *a = node_at(tree, *(const uint32_t *)left);
	const struct kb_calltree_node *b = node_at(tree, *(const uint32_t *)right);
	int order = strcmp(a->name, b->name);

	if (!order)
		order = strcmp(a->image_base, b->image_base);
	if (!order)	/* images with the same base name: in order of creation */
		order = a->key[1] < b->key[1] ? -1 : 1;
	return order;
}

static int make_order(struct kb_calltree *tree)
{
	uint32_t *parents = reallocarray(NULL, tree->nodes.nr, sizeof(*parents));

	for (uint32_t i = 0; parents && i < tree->nodes.nr; i++)
		parents[i] = node_at(tree, i)->parent;
	tree->order = parents ? kb_tree_order(parents, tree->nodes.nr, compare, tree) : NULL;
	free(parents);
	return tree->order ? 0 : -ENOMEM;
}

const struct kb_calltree_node *kb_calltree_finish(struct kb_calltree *tree, bool count,
						  uint32_t *nr, const uint32_t **order)
{
	settle(tree, count);
	if (make_order(tree))
		return NULL;
	*nr = tree->nodes.nr;
	*order = tree->order;
	return node_at(tree, 0);
}

void kb_calltree_label(const struct kb_calltree_node *node, char *label, size_t size)
{
	if (node->name[0])
		snprintf(label, size, "%s", node->name);
	else if (node->image_base[0] == '[')
		snprintf(label, size, "%s", node->image_base);
	else
		snprintf(label, size, "[%s]", node->image_base);
}
