// SPDX-License-Identifier: MIT
/*
 * See waits.h. Wakeups and switches of a part stand in two tables, each in the order of the
 * capture, and are merged by time. A wakeup of a task that waits already says nothing new. One of a
 * task that runs is of the wait that begins when it leaves its CPU: see wakeups.c.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/array.h"
#include "export/parquet/waits.h"

struct ready {
	uint64_t tid;
	enum { UNKNOWN, RUNS, BLOCKED, WOKEN, PREEMPTED } state;
	bool woken_early;	/* while it ran */
	int64_t since;
};

void kb_parquet_waits_init(struct kb_parquet_waits *waits)
{
	*waits = (struct kb_parquet_waits) { 0 };
	kb_table_init(&waits->ready, sizeof(struct ready), 1);
}

void kb_parquet_waits_release(struct kb_parquet_waits *waits)
{
	kb_table_release(&waits->ready);
	free(waits->ns);
}

static const void *column(const struct kb_columns_part *part, const char *table, const char *name,
			  uint64_t *rows)
{
	struct kb_column_values values;
	uint32_t at;
	int number = kb_columns_find(table, &at, name);

	*rows = number < 0 ? 0 : kb_columns_rows(part, (uint32_t)number);
	if (number < 0 || !kb_columns_values(part, (uint32_t)number, at, &values)) {
		*rows = 0;
		return NULL;
	}
	return values.values;
}

static struct ready *find(struct kb_parquet_waits *waits, uint32_t tid)
{
	const uint64_t key = tid;

	return kb_table_get(&waits->ready, &key);
}

static int wake(struct kb_parquet_waits *waits, uint32_t tid, int64_t ns)
{
	struct ready *task = find(waits, tid);

	if (!task)
		return -ENOMEM;
	if (task->state == RUNS) {
		task->woken_early = true;
	} else if (task->state < WOKEN) {
		task->state = WOKEN;
		task->since = ns;
	}
	return 0;
}

/* @tid leaves the CPU; task 0 runs when nobody else can. */
static int leave(struct kb_parquet_waits *waits, uint32_t tid, bool blocked, int64_t ns)
{
	struct ready *task = tid ? find(waits, tid) : NULL;

	if (!task)
		return tid ? -ENOMEM : 0;
	/* woken before the first record of it: it ran then */
	task->woken_early = blocked && (task->woken_early || task->state == WOKEN);
	task->state = blocked ? BLOCKED : PREEMPTED;
	task->since = ns;
	return 0;
}

/* Returns how long @tid waited, -1 if that is not known, or -ENOMEM. */
static int64_t enter(struct kb_parquet_waits *waits, uint32_t tid, int64_t ns)
{
	struct ready *task = tid ? find(waits, tid) : NULL;
	uint64_t waited;
	bool known;

	if (!task)
		return tid ? -ENOMEM : -1;
	waited = (uint64_t)ns - (uint64_t)task->since;
	known = (task->state >= WOKEN || (task->state == BLOCKED && task->woken_early)) &&
		ns >= task->since && waited <= INT64_MAX;
	task->state = RUNS;
	task->woken_early = false;
	return known ? (int64_t)waited : -1;
}

/* Records are missing: nobody knows who ran or was woken there. */
static void forget(struct kb_parquet_waits *waits)
{
	for (uint32_t i = 0; i < waits->ready.nr; i++) {
		struct ready *task = kb_table_row(&waits->ready, i);

		task->state = UNKNOWN;
		task->woken_early = false;
	}
}

int kb_parquet_waits_feed(struct kb_parquet_waits *waits, const struct kb_columns_part *part)
{
	uint64_t nr, nr_wakeups, nr_gaps, wakeup = 0, gap = 0, any;
	const int64_t *ns = column(part, "switches", "at_ns", &nr);
	const uint32_t *next = column(part, "switches", "next_tid", &any);
	const uint32_t *tid = column(part, "switches", "tid", &any);
	const uint8_t *known = column(part, "switches", "known", &any);
	const uint8_t *blocked = column(part, "switches", "blocked", &any);
	const int64_t *woken_ns = column(part, "wakeups", "at_ns", &nr_wakeups);
	const uint32_t *woken = column(part, "wakeups", "woken_tid", &nr_wakeups);
	const int64_t *gaps = column(part, "gaps", "end_ns", &nr_gaps);
	int ret = 0;

	if (!KB_ARRAY_ROOM(waits->ns, waits->max, nr + 1))
		return -ENOMEM;
	for (uint64_t i = 0; i < nr && !ret; i++) {
		for (; gap < nr_gaps && gaps[gap] <= ns[i]; gap++)
			forget(waits);
		for (; wakeup < nr_wakeups && woken_ns[wakeup] <= ns[i] && !ret; wakeup++)
			ret = wake(waits, woken[wakeup], woken_ns[wakeup]);
		if (!ret && known[i])
			ret = leave(waits, tid[i], blocked[i], ns[i]);
		if (!ret)
			waits->ns[i] = enter(waits, next[i], ns[i]);
		if (!ret && waits->ns[i] < -1)
			ret = (int)waits->ns[i];
	}
	for (; wakeup < nr_wakeups && !ret; wakeup++)
		ret = wake(waits, woken[wakeup], woken_ns[wakeup]);
	for (; gap < nr_gaps; gap++)
		forget(waits);
	return ret;
}
