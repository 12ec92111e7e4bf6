// SPDX-License-Identifier: MIT
/* See names.h. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/bisect.h"
#include "base/hash.h"
#include "export/parquet/names.h"

/* ---- names ---- */

/* A row for each name: its key is the hash of the text, and a number for texts of one hash. */
#define KEY_WORDS	2U

void kb_name_pool_init(struct kb_name_pool *pool)
{
	*pool = (struct kb_name_pool) { 0 };
	kb_table_init(&pool->rows, KEY_WORDS * sizeof(uint64_t), KEY_WORDS);
}

void kb_name_pool_release(struct kb_name_pool *pool)
{
	for (uint32_t i = 0; i < pool->nr; i++)
		free((char *)pool->texts[i].data);
	free(pool->texts);
	kb_table_release(&pool->rows);
}

static bool same(struct kb_text one, struct kb_text other)
{
	return one.length == other.length &&
	       (!one.length || memcmp(one.data, other.data, one.length) == 0);
}

/* Keep a copy of @name, the next one. */
static bool keep(struct kb_name_pool *pool, struct kb_text name)
{
	char *copy = malloc(name.length + 1);

	if (!copy || !KB_ARRAY_ROOM(pool->texts, pool->max, pool->nr + 1U)) {
		free(copy);
		return false;
	}
	if (name.length)
		memcpy(copy, name.data, name.length);
	pool->texts[pool->nr].data = copy;
	pool->texts[pool->nr++].length = name.length;
	return true;
}

uint32_t kb_name_pool_add(struct kb_name_pool *pool, struct kb_text name)
{
	uint64_t key[KEY_WORDS] = { kb_hash_bytes(pool->rows.seed, name.data, name.length), 0 };

	for (;; key[1]++) {
		uint32_t row = kb_table_number(&pool->rows, key, kb_table_hash(&pool->rows, key));

		/* a row without a text is one for whose text there was no memory */
		if (row == KB_TABLE_NONE || row > pool->nr || (row == pool->nr && !keep(pool, name)))
			return KB_NAME_NONE;
		if (same(pool->texts[row], name))
			return row;
	}
}

/* ---- tasks ---- */

struct first_row {
	uint64_t tid;
	uint32_t at, nr;	/* in `rows` */
	uint32_t used;		/* the last answer, from `at` on */
};

void kb_task_names_init(struct kb_task_names *tasks)
{
	*tasks = (struct kb_task_names) { 0 };
	kb_table_init(&tasks->first, sizeof(struct first_row), 1);
}

void kb_task_names_release(struct kb_task_names *tasks)
{
	free(tasks->rows);
	kb_table_release(&tasks->first);
}

int kb_task_names_add(struct kb_task_names *tasks, struct kb_task_at row)
{
	if (!KB_ARRAY_ROOM(tasks->rows, tasks->max, tasks->nr + 1U))
		return -ENOMEM;
	row.order = tasks->nr;
	tasks->rows[tasks->nr++] = row;
	return 0;
}

static int compare(const void *left, const void *right)
{
	const struct kb_task_at *a = left, *b = right;

	if (a->tid != b->tid)
		return a->tid < b->tid ? -1 : 1;
	if (a->since != b->since)
		return a->since < b->since ? -1 : 1;
	return a->order < b->order ? -1 : a->order > b->order;
}

static bool index_rows(struct kb_task_names *tasks)
{
	if (tasks->first.nr || !tasks->nr)
		return true;
	qsort(tasks->rows, tasks->nr, sizeof(*tasks->rows), compare);
	for (uint32_t i = 0; i < tasks->nr; i++) {
		const uint64_t key = tasks->rows[i].tid;
		struct first_row *first = kb_table_get(&tasks->first, &key);

		if (!first)
			return false;
		if (!first->nr++)
			first->at = i;
	}
	return true;
}

/* The row in force at @ns. Times grow, so it is mostly the last one, or near. */
static const struct kb_task_at *row_at(const struct kb_task_names *tasks, struct first_row *first,
				       int64_t ns)
{
	const struct kb_task_at *rows = tasks->rows + first->at;

	if (rows[first->used].since <= ns &&
	    (first->used + 1 == first->nr || rows[first->used + 1].since > ns))
		return &rows[first->used];
	first->used = KB_BISECT(i, 1, first->nr, rows[i].since <= ns) - 1;
	return &rows[first->used];
}

struct kb_task_at kb_task_names_find(struct kb_task_names *tasks, struct kb_name_pool *pool,
				     uint32_t tid, int64_t ns)
{
	struct kb_task_at found = { .tid = tid, .pid = tid, .name = KB_NAME_NONE };
	const uint64_t key = tid;
	struct first_row *first;
	char name[16];

	if (!index_rows(tasks))
		return found;
	first = kb_table_find(&tasks->first, &key);
	if (first)
		return *row_at(tasks, first, ns);
	snprintf(name, sizeof(name), ":%u", tid);
	found.name = kb_name_pool_add(pool, kb_text(tid ? name : "idle"));
	return found;
}
