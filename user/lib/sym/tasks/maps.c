// SPDX-License-Identifier: MIT
/*
 * One segment tree for each task that has more than a few rows, over the distinct addresses where
 * its rows begin or end. A row is noted in the O(log n) nodes that tile its range, in order of time.
 * The rows that cover an address are in the nodes from its leaf up to the root. In each node a
 * binary search finds the newest row that is old enough.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/bisect.h"
#include "base/hash.h"
#include "sym/tasks/maps.h"
#include "sym/tasks/row_order.h"

#define NO_ROW		UINT32_MAX
#define MANY_ROWS	(UINT32_MAX - 1)
#define CACHED		2048U		/* a power of two */
#define MAX_ROWS	(16U << 20)	/* 256 times what kbarman writes; sums fit into 32 bits */

#define FEW_ROWS	6U		/* each of them is looked at: many tasks end soon */

struct tree {
	uint64_t *bounds;	/* sorted; leaf i is [bounds[i], bounds[i + 1]) */
	uint32_t nr_leaves;
	uint32_t *starts;	/* node n has items[starts[n]] to items[starts[n + 1]] */
	uint32_t *items;	/* positions in order[]: a larger one is a newer row */
	uint32_t *only;		/* by leaf: the item if there is one, NO_ROW, MANY_ROWS */
	struct kb_maps_hit last;
};

struct owner {
	uint32_t task_id;
	uint32_t first, nr;	/* its rows are order[first], ... in maps */
	struct tree *tree;	/* NULL: not built yet, or it has few rows */
};

/* A cached answer. */
struct cached {
	uint32_t task_id;
	struct kb_maps_hit hit;		/* low > high: none */
};

struct kb_maps {
	const struct kb_map *rows;
	uint32_t *order;	/* rows by (task_id, timestamp, index), without empty ones */
	uint32_t nr;
	struct owner *owners;	/* by task_id */
	uint32_t nr_owners;
	struct owner *everyones;	/* task 0, or NULL */
	bool of_processes;	/* rows have numbers of processes, and threads have none */
	struct cached cache[CACHED], *last;
};

static const struct kb_maps_hit no_hit = { .low = 1 };	/* matches no address */

static const struct kb_map *row_at(const struct kb_maps *maps, uint32_t position)
{
	return &maps->rows[maps->order[position]];
}

static int compare_addresses(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

	return (a > b) - (a < b);
}

static struct owner *find_owner(const struct kb_maps *maps, uint32_t task_id)
{
	uint32_t i = KB_BISECT(k, 0, maps->nr_owners, maps->owners[k].task_id < task_id);

	return i < maps->nr_owners && maps->owners[i].task_id == task_id ? &maps->owners[i] : NULL;
}

/* Note the rows with addresses by task and time. */
static int order_rows(struct kb_maps *maps, const struct kb_header *header)
{
	struct kb_row_place *places = reallocarray(NULL, header->nr_maps + 1, sizeof(*places));
	uint32_t i;

	maps->order = reallocarray(NULL, header->nr_maps + 1, sizeof(*maps->order));
	if (!places || !maps->order) {
		free(places);
		return -ENOMEM;
	}
	for (i = 0; i < header->nr_maps && maps->nr < MAX_ROWS; i++)
		if (header->maps[i].length)
			places[maps->nr++] = (struct kb_row_place) {
				header->maps[i].timestamp, header->maps[i].task_id, i };
	kb_row_order(places, maps->nr);
	for (i = 0; i < maps->nr; i++)
		maps->order[i] = places[i].index;
	free(places);
	return 0;
}

/* Divide the rows among their tasks. */
static int divide_rows(struct kb_maps *maps)
{
	uint32_t i, task_id, nr = 0;

	for (i = 0; i < maps->nr; i++)
		nr += !i || row_at(maps, i)->task_id != row_at(maps, i - 1)->task_id;
	maps->owners = calloc(nr + 1, sizeof(*maps->owners));
	if (!maps->owners)
		return -ENOMEM;
	for (i = 0; i < maps->nr; i++) {
		task_id = row_at(maps, i)->task_id;
		if (!i || task_id != row_at(maps, i - 1)->task_id)
			maps->owners[maps->nr_owners++] = (struct owner) {
				.task_id = task_id,
				.first = i,
			};
		maps->owners[maps->nr_owners - 1].nr++;
	}
	maps->everyones = find_owner(maps, 0);
	return 0;
}

static void fell(struct tree *tree)
{
	if (!tree)
		return;
	free(tree->bounds);
	free(tree->starts);
	free(tree->items);
	free(tree->only);
	free(tree);
}

int kb_maps_create(struct kb_maps **out, const struct kb_barman *barman)
{
	const struct kb_header *header = kb_barman_header(barman);
	const char *whose = kb_barman_fact(barman, "maps");
	struct kb_maps *maps = calloc(1, sizeof(*maps));
	uint32_t i;

	if (!maps)
		return -ENOMEM;
	maps->rows = header->maps;
	maps->of_processes = whose && strcmp(whose, "process") == 0;
	for (i = 0; i < CACHED; i++)
		maps->cache[i].hit = no_hit;
	maps->last = maps->cache;
	if (order_rows(maps, header) || divide_rows(maps)) {
		kb_maps_destroy(maps);
		return -ENOMEM;
	}
	*out = maps;
	return 0;
}

void kb_maps_destroy(struct kb_maps *maps)
{
	uint32_t i;

	if (!maps)
		return;
	for (i = 0; i < maps->nr_owners; i++)
		fell(maps->owners[i].tree);
	free(maps->owners);
	free(maps->order);
	free(maps);
}

/* The last address of a row. A hostile length is cut at the top of memory. */
static uint64_t last_address(const struct kb_map *row)
{
	return row->length - 1 > UINT64_MAX - row->base_address ?
		UINT64_MAX : row->base_address + (row->length - 1);
}

/* The leaf that contains @address; bounds[0] is 0. */
static uint32_t find_leaf(const struct tree *tree, uint64_t address)
{
	return KB_BISECT(i, 1, tree->nr_leaves, tree->bounds[i] <= address) - 1;
}

static int build_bounds(const struct kb_maps *maps, const struct owner *owner, struct tree *tree)
{
	uint32_t i, nr = 0, kept = 0;

	tree->bounds = reallocarray(NULL, 2 * (size_t)owner->nr + 1, sizeof(*tree->bounds));
	if (!tree->bounds)
		return -ENOMEM;
	tree->bounds[nr++] = 0;
	for (i = 0; i < owner->nr; i++) {
		const struct kb_map *row = row_at(maps, owner->first + i);
		uint64_t last = last_address(row);

		tree->bounds[nr++] = row->base_address;
		if (last != UINT64_MAX)
			tree->bounds[nr++] = last + 1;
	}
	qsort(tree->bounds, nr, sizeof(*tree->bounds), compare_addresses);
	for (i = 0; i < nr; i++)
		if (i == 0 || tree->bounds[i] != tree->bounds[kept - 1])
			tree->bounds[kept++] = tree->bounds[i];
	tree->nr_leaves = kept;
	return 0;
}

/*
 * Note every row in the nodes that tile it. The first call only counts (@items NULL), in
 * starts[node + 1]. The second call stores, with starts[node] as position in the node.
 */
static void note_rows(const struct kb_maps *maps, const struct owner *owner,
		      const struct tree *tree, uint32_t *starts, uint32_t *items)
{
	uint32_t i;

	for (i = 0; i < owner->nr; i++) {
		const struct kb_map *row = row_at(maps, owner->first + i);
		uint32_t low = tree->nr_leaves + find_leaf(tree, row->base_address);
		uint32_t high = tree->nr_leaves + find_leaf(tree, last_address(row)) + 1;
		uint32_t nodes[2], nr, n;

		for (; low < high; low /= 2, high /= 2) {
			nr = 0;
			if (low & 1)
				nodes[nr++] = low++;
			if (high & 1)
				nodes[nr++] = --high;
			for (n = 0; n < nr; n++) {
				if (items)
					items[starts[nodes[n]]++] = owner->first + i;
				else
					starts[nodes[n] + 1]++;
			}
		}
	}
}

/* Most addresses were mapped only once: for these the search in the tree is not needed. */
static void note_only_rows(struct tree *tree)
{
	uint32_t leaf, node;

	for (leaf = 0; leaf < tree->nr_leaves; leaf++) {
		tree->only[leaf] = NO_ROW;
		for (node = tree->nr_leaves + leaf; node; node /= 2) {
			uint32_t nr = tree->starts[node + 1] - tree->starts[node];

			if (nr > 1 || (nr && tree->only[leaf] != NO_ROW)) {
				tree->only[leaf] = MANY_ROWS;
				break;
			}
			if (nr)
				tree->only[leaf] = tree->items[tree->starts[node]];
		}
	}
}

/* NULL without memory. */
static struct tree *build(const struct kb_maps *maps, const struct owner *owner)
{
	struct tree *tree = calloc(1, sizeof(*tree));
	uint32_t nr_nodes, n;

	if (!tree || build_bounds(maps, owner, tree))
		goto err_memory;
	tree->last = no_hit;
	nr_nodes = 2 * tree->nr_leaves;
	tree->starts = calloc((size_t)nr_nodes + 1, sizeof(*tree->starts));
	if (!tree->starts)
		goto err_memory;
	note_rows(maps, owner, tree, tree->starts, NULL);
	for (n = 0; n < nr_nodes; n++)
		tree->starts[n + 1] += tree->starts[n];
	tree->items = reallocarray(NULL, (size_t)tree->starts[nr_nodes] + 1,
				   sizeof(*tree->items));
	tree->only = reallocarray(NULL, tree->nr_leaves, sizeof(*tree->only));
	if (!tree->items || !tree->only)
		goto err_memory;
	note_rows(maps, owner, tree, tree->starts, tree->items);
	/* Each position is now the start of the next node: move all by one. */
	memmove(tree->starts + 1, tree->starts, nr_nodes * sizeof(*tree->starts));
	tree->starts[0] = 0;
	note_only_rows(tree);
	return tree;

err_memory:
	fell(tree);
	return NULL;
}

/* The rows of one leaf before and after @timestamp: positions in order[], or NO_ROW. */
static void stab(const struct kb_maps *maps, const struct tree *tree, uint32_t leaf,
		 uint64_t timestamp, uint32_t *newest, uint32_t *later)
{
	uint32_t node;

	*newest = NO_ROW;
	*later = NO_ROW;
	for (node = tree->nr_leaves + leaf; node; node /= 2) {
		uint32_t begin = tree->starts[node], end = tree->starts[node + 1];
		/* the first row that is newer */
		uint32_t i = KB_BISECT(k, begin, end, row_at(maps, tree->items[k])->timestamp <= timestamp);

		if (i > begin && (*newest == NO_ROW || tree->items[i - 1] > *newest))
			*newest = tree->items[i - 1];
		if (i < end && tree->items[i] < *later)	/* NO_ROW is the largest number */
			*later = tree->items[i];
	}
}

static bool holds(const struct kb_maps_hit *hit, uint64_t timestamp, uint64_t pc)
{
	return pc >= hit->low && pc <= hit->high &&
	       timestamp >= hit->since && timestamp <= hit->until;
}

/* The answer is the same until @later begins, and since @newest did. */
static void take_rows(const struct kb_maps *maps, uint32_t newest, uint32_t later,
		      struct kb_maps_hit *hit)
{
	uint32_t found = newest != NO_ROW ? newest : later;

	hit->since = newest != NO_ROW ? row_at(maps, newest)->timestamp : 0;
	hit->until = later != NO_ROW ? row_at(maps, later)->timestamp - 1 : UINT64_MAX;
	if (found != NO_ROW) {
		hit->row = row_at(maps, found);
		hit->index = maps->order[found];
	}
}

static void ask_each(const struct kb_maps *maps, const struct owner *owner, uint64_t timestamp,
		     uint64_t pc, struct kb_maps_hit *hit)
{
	uint32_t newest = NO_ROW, later = NO_ROW, i;

	*hit = (struct kb_maps_hit) { .high = UINT64_MAX };
	for (i = owner->first; i < owner->first + owner->nr; i++) {
		const struct kb_map *row = row_at(maps, i);
		uint64_t first = row->base_address, last = last_address(row);

		if (pc < first) {
			hit->high = first - 1 < hit->high ? first - 1 : hit->high;
			continue;
		}
		if (pc > last) {
			hit->low = last + 1 > hit->low ? last + 1 : hit->low;
			continue;
		}
		hit->low = first > hit->low ? first : hit->low;
		hit->high = last < hit->high ? last : hit->high;
		if (row->timestamp <= timestamp)
			newest = i;
		else if (later == NO_ROW)
			later = i;
	}
	take_rows(maps, newest, later, hit);
}

/* The answer from the rows of one task. Its `row` may be newer than @timestamp. */
static int ask(const struct kb_maps *maps, struct owner *owner, uint64_t timestamp, uint64_t pc,
	       struct kb_maps_hit *hit)
{
	uint32_t leaf, newest = NO_ROW, later = NO_ROW;
	struct tree *tree = owner->tree;

	if (owner->nr <= FEW_ROWS) {
		ask_each(maps, owner, timestamp, pc, hit);
		return 0;
	}
	if (!tree) {
		tree = owner->tree = build(maps, owner);
		if (!tree)
			return -ENOMEM;
	}
	if (holds(&tree->last, timestamp, pc)) {
		*hit = tree->last;
		return 0;
	}
	leaf = find_leaf(tree, pc);
	if (tree->only[leaf] == MANY_ROWS)
		stab(maps, tree, leaf, timestamp, &newest, &later);
	else if (tree->only[leaf] != NO_ROW)
		*(row_at(maps, tree->only[leaf])->timestamp <= timestamp ? &newest : &later) =
			tree->only[leaf];
	*hit = (struct kb_maps_hit) {
		.low = tree->bounds[leaf],
		.high = leaf + 1 < tree->nr_leaves ? tree->bounds[leaf + 1] - 1 : UINT64_MAX,
	};
	take_rows(maps, newest, later, hit);
	tree->last = *hit;
	return 0;
}

static void narrow(struct kb_maps_hit *hit, const struct kb_maps_hit *by)
{
	if (by->low > hit->low)
		hit->low = by->low;
	if (by->high < hit->high)
		hit->high = by->high;
	if (by->since > hit->since)
		hit->since = by->since;
	if (by->until < hit->until)
		hit->until = by->until;
}

/* Combine with the answer of @owner. Returns 1 if the result is final, 0 to go on, or -ENOMEM. */
static int consider(const struct kb_maps *maps, struct owner *owner, uint64_t timestamp,
		    uint64_t pc, struct kb_maps_hit *hit)
{
	struct kb_maps_hit answer;

	if (!owner)
		return 0;
	if (ask(maps, owner, timestamp, pc, &answer))
		return -ENOMEM;
	narrow(hit, &answer);
	if (!answer.row)
		return 0;
	if (answer.row->timestamp <= timestamp || !hit->row) {
		hit->row = answer.row;
		hit->index = answer.index;
	}
	return hit->row->timestamp <= timestamp;
}

/*
 * Requests of several CPUs alternate, and most tasks run in a few places. So all addresses of a
 * task in 64 KiB share a cache entry.
 */
static struct cached *cached_answer(struct kb_maps *maps, uint32_t task_id, uint64_t pc)
{
	uint64_t hash = kb_hash_spread((uint64_t)task_id << 32 ^ pc >> 16);

	return &maps->cache[hash >> 32 & (CACHED - 1)];
}

static int find_anew(struct kb_maps *maps, const struct kb_tasks *tasks, uint32_t task_id,
		     uint64_t timestamp, uint64_t pc, struct kb_maps_hit *hit)
{
	struct kb_task_hit task;
	int ret = 0;

	*hit = (struct kb_maps_hit) { .high = UINT64_MAX, .until = UINT64_MAX };
	if (!task_id)
		return consider(maps, maps->everyones, timestamp, pc, hit);
	/* The number of a thread may be that of an earlier process, which has rows. */
	if (!maps->of_processes) {
		ret = consider(maps, find_owner(maps, task_id), timestamp, pc, hit);
		if (ret)
			return ret;
	}
	kb_tasks_find(tasks, task_id, timestamp, &task);
	if (task.since > hit->since)
		hit->since = task.since;
	if (task.until < hit->until)
		hit->until = task.until;
	if (maps->of_processes || task.tgid != task_id)
		ret = consider(maps, find_owner(maps, task.tgid), timestamp, pc, hit);
	return ret ? ret : consider(maps, maps->everyones, timestamp, pc, hit);
}

int kb_maps_find(struct kb_maps *maps, const struct kb_tasks *tasks, uint32_t task_id,
		 uint64_t timestamp, uint64_t pc, struct kb_maps_hit *hit)
{
	struct cached *cached = maps->last;
	int ret;

	if (cached->task_id != task_id || !holds(&cached->hit, timestamp, pc))
		cached = maps->last = cached_answer(maps, task_id, pc);
	if (cached->task_id != task_id || !holds(&cached->hit, timestamp, pc)) {
		cached->task_id = task_id;
		ret = find_anew(maps, tasks, task_id, timestamp, pc, &cached->hit);
		if (ret < 0) {
			cached->hit = no_hit;
			return ret;
		}
	}
	*hit = cached->hit;
	return 0;
}
