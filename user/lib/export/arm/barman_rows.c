// SPDX-License-Identifier: MIT
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/bisect.h"
#include "export/arm/barman_rows.h"
#include "sym/tasks/row_order.h"

struct making {
	const struct kb_header *header;
	struct kb_row_place *places;	/* of the rows, by process and time */
	uint32_t nr;
	struct kb_barman_rows *to;
	bool no_memory;
};

/* A time in which a number was that of a thread of one process: until the tick before @end. */
struct life {
	uint32_t task_id, tgid;
	uint64_t begin, end;
	bool first;			/* the number had no rows before */
};

static void put(struct making *m, struct kb_map row)
{
	struct kb_barman_rows *to = m->to;

	if (++to->wanted > KB_BARMAN_ROWS_MAX || m->no_memory)
		return;
	if (!KB_ARRAY_ROOM(to->rows, to->max, to->nr + (size_t)1))
		m->no_memory = true;
	else
		to->rows[to->nr++] = row;
}

/* Everything that a program may have, and nothing of the kernel. */
static void hide_others(struct making *m, const struct life *life)
{
	put(m, (struct kb_map) {
		.timestamp = life->begin, .task_id = life->task_id, .image = "[unknown]",
		.length = m->header->word_size == 8 ? UINT64_C(1) << 63 : UINT32_MAX,
	});
}

static bool put_life(struct making *m, const struct life *life)
{
	uint32_t at = KB_BISECT(i, 0, m->nr, m->places[i].task_id < life->tgid);
	uint64_t before = m->to->wanted;

	if (!life->first)
		hide_others(m, life);
	for (; at < m->nr && m->places[at].task_id == life->tgid; at++) {
		struct kb_map row = m->header->maps[m->places[at].index];

		if (row.timestamp >= life->end)
			break;
		row.task_id = life->task_id;
		/* What was mapped when the life began. */
		if (row.timestamp < life->begin)
			row.timestamp = life->begin;
		put(m, row);
	}
	return m->to->wanted > before;
}

static void put_task(struct making *m, const struct kb_tasks *tasks, uint32_t task_id)
{
	struct life life = { .task_id = task_id, .first = true };
	struct kb_task_hit hit;
	uint64_t at = 0;

	do {
		kb_tasks_find(tasks, task_id, at, &hit);
		life.tgid = hit.tgid;
		/* A row that is newer may be of the same process. */
		while (hit.until != UINT64_MAX && hit.tgid == life.tgid)
			kb_tasks_find(tasks, task_id, hit.until + 1, &hit);
		life.end = hit.tgid == life.tgid ? UINT64_MAX : hit.since;
		if (put_life(m, &life))
			life.first = false;
		at = life.begin = life.end;
	} while (life.end != UINT64_MAX);
}

/* The rows of task 0 are everybody's. */
static void put_everybodys(struct making *m)
{
	for (uint32_t i = 0; i < m->nr && !m->places[i].task_id; i++)
		put(m, m->header->maps[m->places[i].index]);
}

static int compare_ids(const void *left, const void *right)
{
	uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;

	return (a > b) - (a < b);
}

/* The tasks that were sampled, and those with rows of their own: a number stands here once or twice. */
static uint32_t *collect_ids(const struct making *m, const struct kb_table *sampled, uint32_t *nr)
{
	uint32_t *ids = reallocarray(NULL, (size_t)sampled->nr + m->nr + 1, sizeof(*ids));

	*nr = 0;
	for (uint32_t i = 0; ids && i < sampled->nr; i++)
		ids[(*nr)++] = (uint32_t)*(const uint64_t *)kb_table_row(sampled, i);
	for (uint32_t i = 0; ids && i < m->nr; i++)
		if (!i || m->places[i].task_id != m->places[i - 1].task_id)
			ids[(*nr)++] = m->places[i].task_id;
	if (ids)
		qsort(ids, *nr, sizeof(*ids), compare_ids);
	return ids;
}

int kb_barman_rows_make(struct kb_barman_rows *rows, const struct kb_header *header,
			const struct kb_tasks *tasks, const struct kb_table *sampled)
{
	struct making m = { .header = header, .nr = header->nr_maps, .to = rows };
	uint32_t *ids = NULL, nr = 0;

	*rows = (struct kb_barman_rows) { 0 };
	m.places = reallocarray(NULL, m.nr + (size_t)1, sizeof(*m.places));
	for (uint32_t i = 0; m.places && i < m.nr; i++)
		m.places[i] = (struct kb_row_place) {
			header->maps[i].timestamp, header->maps[i].task_id, i };
	if (m.places) {
		kb_row_order(m.places, m.nr);
		ids = collect_ids(&m, sampled, &nr);
	}
	m.no_memory = !ids;
	if (ids)
		put_everybodys(&m);
	for (uint32_t i = 0; i < nr && !m.no_memory; i++)
		if (ids[i] && (!i || ids[i] != ids[i - 1]))
			put_task(&m, tasks, ids[i]);
	free(ids);
	free(m.places);
	if (m.no_memory)
		return -ENOMEM;
	return rows->wanted > KB_BARMAN_ROWS_MAX ? -E2BIG : 0;
}

void kb_barman_rows_release(struct kb_barman_rows *rows)
{
	free(rows->rows);
	*rows = (struct kb_barman_rows) { 0 };
}
