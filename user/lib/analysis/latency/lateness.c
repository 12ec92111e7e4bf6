// SPDX-License-Identifier: MIT
/*
 * Waits of as many tasks as a capture has, in tables that grow with tasks, names and idle states,
 * not with waits.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/facts/name_ids.h"
#include "analysis/latency/lateness.h"
#include "analysis/time/histogram.h"
#include "analysis/time/origin.h"
#include "base/array.h"
#include "base/heap.h"
#include "base/table.h"

#define WORST		10U
/*
 * To say who ran meanwhile, at most so many pieces of a wait are looked at. Where all waits are
 * long queues, that is too slow: so it is at most so many of a wait on average, and a stock for
 * waits of more pieces.
 */
#define PIECES		256U
#define PIECES_MEAN	16U
#define PIECES_STOCK	4096U
#define BEHIND_MAX	16384U	/* rows of who ran while who waited; then one for all others */

struct task_row {
	uint64_t key;
	uint64_t last_seen;
	struct kb_histogram woken, preempted;
	uint64_t woken_parts[KB_PARTS], preempted_parts[KB_PARTS];
};

struct waker_row {
	uint64_t key;			/* kb_origin_key() */
	uint64_t last_seen;
	struct kb_histogram woken;
	uint64_t parts[KB_PARTS];
};

struct idle_row {
	uint64_t key;			/* the state + 1 */
	struct kb_histogram left;
};

/* NONE: not kept apart. */
#define NONE	UINT64_MAX

struct behind_row {
	uint64_t key[2];		/* number of a name; kb_origin_key(), of tasks with that
					 * of their name */
	const struct kb_name_id *task, *ran;	/* NULL: not kept apart; `ran`: or it is no task */
	uint64_t ns, pieces;
};

struct worst {
	struct kb_latency_wait waits[WORST];	/* a heap, the shortest on top */
	uint32_t nr;
};

struct kb_lateness {
	struct kb_trace *trace;
	const struct kb_history *history;
	struct kb_name_ids names;
	struct kb_table tasks, wakers, idle, behind;
	uint32_t stock;			/* pieces that may be looked at */
	struct kb_histogram woken, preempted;
	uint64_t woken_parts[KB_PARTS], preempted_parts[KB_PARTS];
	struct worst worst, worst_preempted;

	/* The results. */
	struct kb_latency_task *task_rows;
	struct kb_latency_waker *waker_rows;
	struct kb_latency_idle *idle_rows;
	struct kb_latency_behind *behind_rows;
	char (*ran_names)[KB_ORIGIN_NAME];
};

int kb_lateness_create(struct kb_lateness **out, struct kb_trace *trace,
		       const struct kb_history *history)
{
	const struct kb_tasks *tasks = kb_trace_tasks(trace, NULL);
	struct kb_lateness *lateness = tasks ? calloc(1, sizeof(*lateness)) : NULL;

	if (!lateness)
		return -ENOMEM;
	lateness->trace = trace;
	lateness->history = history;
	kb_name_ids_init(&lateness->names, tasks);
	kb_table_init(&lateness->tasks, sizeof(struct task_row), 1);
	kb_table_init(&lateness->wakers, sizeof(struct waker_row), 1);
	kb_table_init(&lateness->idle, sizeof(struct idle_row), 1);
	kb_table_init(&lateness->behind, sizeof(struct behind_row), 2);
	*out = lateness;
	return 0;
}

void kb_lateness_destroy(struct kb_lateness *lateness)
{
	uint32_t i;

	if (!lateness)
		return;
	for (i = 0; i < lateness->tasks.nr; i++) {
		struct task_row *row = kb_table_row(&lateness->tasks, i);

		kb_histogram_release(&row->woken);
		kb_histogram_release(&row->preempted);
	}
	for (i = 0; i < lateness->wakers.nr; i++) {
		struct waker_row *row = kb_table_row(&lateness->wakers, i);

		kb_histogram_release(&row->woken);
	}
	for (i = 0; i < lateness->idle.nr; i++) {
		struct idle_row *row = kb_table_row(&lateness->idle, i);

		kb_histogram_release(&row->left);
	}
	kb_histogram_release(&lateness->woken);
	kb_histogram_release(&lateness->preempted);
	kb_table_release(&lateness->tasks);
	kb_table_release(&lateness->wakers);
	kb_table_release(&lateness->idle);
	kb_table_release(&lateness->behind);
	kb_name_ids_release(&lateness->names);
	free(lateness->task_rows);
	free(lateness->waker_rows);
	free(lateness->idle_rows);
	free(lateness->behind_rows);
	free(lateness->ran_names);
	free(lateness);
}

/* ---- who ran meanwhile ---- */

struct looking {
	struct kb_lateness *lateness;
	const struct kb_name_id *waits;
	uint64_t ticks;
	uint64_t left;			/* ns that are not looked at yet */
	uint32_t pieces;
	int error;
};

static struct behind_row *get_behind(struct kb_lateness *lateness, const uint64_t key[2])
{
	static const uint64_t others[2] = { NONE, NONE };
	struct behind_row *row = kb_table_find(&lateness->behind, key);

	if (row)
		return row;
	return kb_table_get(&lateness->behind, lateness->behind.nr < BEHIND_MAX ? key : others);
}

static int add_behind(struct looking *looking, const struct kb_origin *what, uint64_t ns)
{
	const struct kb_name_id *ran = NULL;
	uint64_t key[2] = { looking->waits->id, NONE };
	struct behind_row *row;

	if (what) {
		key[1] = kb_origin_key(what);
		if (what->kind == KB_TILE_TASK) {
			ran = kb_name_ids_find(&looking->lateness->names, what->id, looking->ticks);
			if (!ran)
				return -ENOMEM;
			key[1] = (uint64_t)KB_TILE_TASK << 48 | ran->id;
		}
	}
	row = get_behind(looking->lateness, key);
	if (!row)
		return -ENOMEM;
	if (row->key[0] != NONE) {
		row->task = looking->waits;
		row->ran = ran;
	}
	row->ns += ns;
	row->pieces++;
	return 0;
}

static bool take_piece(void *context, const struct kb_origin *what, uint64_t ns)
{
	struct looking *looking = context;

	looking->pieces++;
	looking->left -= ns < looking->left ? ns : looking->left;
	looking->error = add_behind(looking, what, ns);
	return !looking->error;
}

static int64_t end_of(const struct kb_late *late)
{
	return (int64_t)((uint64_t)late->wait.since + late->wait.ns);
}

static uint64_t queued_ns(const struct kb_latency_wait *wait)
{
	return wait->parts[KB_PART_TASK] + wait->parts[KB_PART_SOFTIRQ] + wait->parts[KB_PART_IRQ];
}

static int add_meanwhile(struct kb_lateness *lateness, const struct kb_late *late)
{
	struct looking looking = {
		.lateness = lateness,
		.ticks = late->wait.ticks,
		.left = queued_ns(&late->wait),
	};

	lateness->stock += PIECES_MEAN;
	if (lateness->stock > PIECES_STOCK)
		lateness->stock = PIECES_STOCK;
	if (!looking.left)
		return 0;
	looking.waits = kb_name_ids_find(&lateness->names, late->wait.task_id, late->wait.ticks);
	if (!looking.waits)
		return -ENOMEM;
	kb_history_look(lateness->history, late->wait.core, late->there_since, end_of(late),
			lateness->stock < PIECES ? lateness->stock : PIECES, take_piece, &looking);
	lateness->stock -= looking.pieces;
	if (looking.error)
		return looking.error;
	return looking.left ? add_behind(&looking, NULL, looking.left) : 0;
}

/* ---- the worst ---- */

static int compare_waits(const void *left, const void *right)
{
	const struct kb_latency_wait *a = left, *b = right;

	if (a->ns != b->ns)
		return a->ns > b->ns ? -1 : 1;
	if (a->since != b->since)
		return a->since < b->since ? -1 : 1;
	return (a->task_id > b->task_id) - (a->task_id < b->task_id);
}

static bool goes_before(const struct kb_latency_wait *a, const struct kb_latency_wait *b)
{
	return compare_waits(a, b) > 0;
}

KB_HEAP(worst, struct kb_latency_wait, goes_before)

static int compare_pieces(const void *left, const void *right)
{
	const struct kb_latency_piece *a = left, *b = right;
	uint64_t a_key = kb_origin_key(&a->what), b_key = kb_origin_key(&b->what);

	if (a->ns != b->ns)
		return a->ns > b->ns ? -1 : 1;
	return (a_key > b_key) - (a_key < b_key);
}

/* The whole story of a wait, as far back as the history goes. */
static void tell(const struct kb_lateness *lateness, const struct kb_late *late,
		 struct kb_latency_wait *wait)
{
	struct kb_ran meanwhile = { .nr = 0 };
	uint64_t all = queued_ns(wait);
	uint32_t i;

	kb_history_look(lateness->history, wait->core, late->there_since, end_of(late), UINT32_MAX,
			kb_ran_take, &meanwhile);
	qsort(meanwhile.pieces, meanwhile.nr, sizeof(meanwhile.pieces[0]), compare_pieces);
	for (i = 0; i < meanwhile.nr && i < KB_LATENCY_MEANWHILE; i++) {
		wait->meanwhile[i] = meanwhile.pieces[i];
		all -= meanwhile.pieces[i].ns < all ? meanwhile.pieces[i].ns : all;
	}
	wait->nr_meanwhile = i;
	wait->others_ns = all;
}

static void remember(const struct kb_lateness *lateness, struct worst *worst,
		     const struct kb_late *late)
{
	struct kb_latency_wait wait = late->wait;

	if (worst->nr == WORST && compare_waits(&wait, &worst->waits[0]) >= 0)
		return;
	tell(lateness, late, &wait);
	if (worst->nr < WORST) {
		worst->waits[worst->nr] = wait;
		worst_up(worst->waits, worst->nr++);
	} else {
		worst->waits[0] = wait;
		worst_down(worst->waits, worst->nr);
	}
}

/* ---- waits ---- */

static void add_parts(uint64_t sums[KB_PARTS], const uint64_t parts[KB_PARTS])
{
	unsigned int i;

	for (i = 0; i < KB_PARTS; i++)
		sums[i] += parts[i];
}

static int add_waker(struct kb_lateness *lateness, const struct kb_latency_wait *wait)
{
	uint64_t key = kb_origin_key(&wait->waker);
	struct waker_row *row = kb_table_get(&lateness->wakers, &key);

	if (!row)
		return -ENOMEM;
	row->last_seen = wait->ticks;
	add_parts(row->parts, wait->parts);
	return kb_histogram_add(&row->woken, wait->ns);
}

static int add_idle(struct kb_lateness *lateness, const struct kb_late *late)
{
	uint64_t key = (uint64_t)((int64_t)late->wait.idle_state + 1);
	struct idle_row *row = kb_table_get(&lateness->idle, &key);

	if (!row)
		return -ENOMEM;
	return kb_histogram_add(&row->left, (uint64_t)late->left - (uint64_t)late->there_since);
}

static int add_woken(struct kb_lateness *lateness, struct task_row *task,
		     const struct kb_late *late)
{
	add_parts(lateness->woken_parts, late->wait.parts);
	add_parts(task->woken_parts, late->wait.parts);
	remember(lateness, &lateness->worst, late);
	return kb_histogram_add(&lateness->woken, late->wait.ns) ?:
	       kb_histogram_add(&task->woken, late->wait.ns) ?:
	       add_waker(lateness, &late->wait) ?:
	       (late->wait.has_left ? add_idle(lateness, late) : 0);
}

static int add_preempted(struct kb_lateness *lateness, struct task_row *task,
			 const struct kb_late *late)
{
	add_parts(lateness->preempted_parts, late->wait.parts);
	add_parts(task->preempted_parts, late->wait.parts);
	remember(lateness, &lateness->worst_preempted, late);
	return kb_histogram_add(&lateness->preempted, late->wait.ns) ?:
	       kb_histogram_add(&task->preempted, late->wait.ns);
}

int kb_lateness_add(struct kb_lateness *lateness, const struct kb_late *late)
{
	uint64_t key = late->wait.task_id;
	struct task_row *task = kb_table_get(&lateness->tasks, &key);
	int ret;

	if (!task)
		return -ENOMEM;
	task->last_seen = late->wait.ticks;
	ret = late->wait.preempted ? add_preempted(lateness, task, late)
				   : add_woken(lateness, task, late);
	return ret ?: add_meanwhile(lateness, late);
}

/* ---- results ---- */

static int compare_task_rows(const void *left, const void *right)
{
	const struct kb_latency_task *a = left, *b = right;
	uint64_t a_sum = a->woken.sum_ns + a->preempted.sum_ns;
	uint64_t b_sum = b->woken.sum_ns + b->preempted.sum_ns;

	if (a_sum != b_sum)
		return a_sum > b_sum ? -1 : 1;
	return (a->task_id > b->task_id) - (a->task_id < b->task_id);
}

static int finish_tasks(struct kb_lateness *lateness, struct kb_latency *shown)
{
	uint32_t i, nr = lateness->tasks.nr;
	struct kb_latency_task *rows = calloc((size_t)nr + 1, sizeof(*rows));

	if (!rows)
		return -ENOMEM;
	for (i = 0; i < nr; i++) {
		const struct task_row *row = kb_table_row(&lateness->tasks, i);

		rows[i].task_id = (uint32_t)row->key;
		rows[i].last_seen = row->last_seen;
		rows[i].woken = kb_histogram_stats(&row->woken);
		rows[i].preempted = kb_histogram_stats(&row->preempted);
		memcpy(rows[i].woken_parts, row->woken_parts, sizeof(row->woken_parts));
		memcpy(rows[i].preempted_parts, row->preempted_parts, sizeof(row->preempted_parts));
	}
	qsort(rows, nr, sizeof(*rows), compare_task_rows);
	shown->tasks = lateness->task_rows = rows;
	shown->nr_tasks = nr;
	return 0;
}

static int compare_wakers(const void *left, const void *right)
{
	const struct kb_latency_waker *a = left, *b = right;
	uint64_t a_key = kb_origin_key(&a->origin), b_key = kb_origin_key(&b->origin);

	if (a->woken.sum_ns != b->woken.sum_ns)
		return a->woken.sum_ns > b->woken.sum_ns ? -1 : 1;
	return (a_key > b_key) - (a_key < b_key);
}

static int finish_wakers(struct kb_lateness *lateness, struct kb_latency *shown)
{
	uint32_t i, nr = lateness->wakers.nr;
	struct kb_latency_waker *rows = calloc((size_t)nr + 1, sizeof(*rows));

	if (!rows)
		return -ENOMEM;
	for (i = 0; i < nr; i++) {
		const struct waker_row *row = kb_table_row(&lateness->wakers, i);

		rows[i].origin = kb_origin_of(row->key);
		rows[i].last_seen = row->last_seen;
		rows[i].woken = kb_histogram_stats(&row->woken);
		memcpy(rows[i].parts, row->parts, sizeof(row->parts));
	}
	qsort(rows, nr, sizeof(*rows), compare_wakers);
	shown->wakers = lateness->waker_rows = rows;
	shown->nr_wakers = nr;
	return 0;
}

static int compare_idle(const void *left, const void *right)
{
	const struct kb_latency_idle *a = left, *b = right;

	return (a->state > b->state) - (a->state < b->state);
}

static int finish_idle(struct kb_lateness *lateness, struct kb_latency *shown)
{
	uint32_t i, nr = lateness->idle.nr;
	struct kb_latency_idle *rows = calloc((size_t)nr + 1, sizeof(*rows));

	if (!rows)
		return -ENOMEM;
	for (i = 0; i < nr; i++) {
		const struct idle_row *row = kb_table_row(&lateness->idle, i);

		rows[i].state = (int)row->key - 1;
		rows[i].left = kb_histogram_stats(&row->left);
	}
	qsort(rows, nr, sizeof(*rows), compare_idle);
	shown->idle = lateness->idle_rows = rows;
	shown->nr_idle = nr;
	return 0;
}

static int compare_behind(const void *left, const void *right)
{
	const struct kb_latency_behind *a = left, *b = right;
	int order;

	if (a->ns != b->ns)
		return a->ns > b->ns ? -1 : 1;
	order = strcmp(a->task ? a->task : "", b->task ? b->task : "");
	return order ? order : strcmp(a->ran ? a->ran : "", b->ran ? b->ran : "");
}

static int finish_behind(struct kb_lateness *lateness, struct kb_latency *shown)
{
	uint32_t i, nr = lateness->behind.nr;
	struct kb_latency_behind *rows = calloc((size_t)nr + 1, sizeof(*rows));

	lateness->behind_rows = rows;
	lateness->ran_names = calloc((size_t)nr + 1, sizeof(*lateness->ran_names));
	if (!rows || !lateness->ran_names)
		return -ENOMEM;
	for (i = 0; i < nr; i++) {
		const struct behind_row *row = kb_table_row(&lateness->behind, i);
		struct kb_origin origin = kb_origin_of(row->key[1]);

		rows[i].task = row->task ? row->task->name : NULL;
		rows[i].ns = row->ns;
		rows[i].pieces = row->pieces;
		if (row->key[1] == NONE)
			continue;
		rows[i].kind = origin.kind;
		rows[i].ran = row->ran ? row->ran->name
				       : kb_origin_name(lateness->trace, &origin, 0,
							lateness->ran_names[i], KB_ORIGIN_NAME);
	}
	qsort(rows, nr, sizeof(*rows), compare_behind);
	shown->behind = rows;
	shown->nr_behind = nr;
	return 0;
}

static void finish_worst(struct kb_lateness *lateness, struct kb_latency *shown)
{
	struct worst *worst = &lateness->worst, *preempted = &lateness->worst_preempted;

	qsort(worst->waits, worst->nr, sizeof(worst->waits[0]), compare_waits);
	qsort(preempted->waits, preempted->nr, sizeof(preempted->waits[0]), compare_waits);
	shown->worst = worst->waits;
	shown->nr_worst = worst->nr;
	shown->worst_preempted = preempted->waits;
	shown->nr_worst_preempted = preempted->nr;
}

int kb_lateness_finish(struct kb_lateness *lateness, struct kb_latency *shown)
{
	shown->woken = kb_histogram_stats(&lateness->woken);
	shown->preempted = kb_histogram_stats(&lateness->preempted);
	memcpy(shown->woken_parts, lateness->woken_parts, sizeof(shown->woken_parts));
	memcpy(shown->preempted_parts, lateness->preempted_parts, sizeof(shown->preempted_parts));
	kb_histogram_powers(&lateness->woken, shown->woken_powers);
	kb_histogram_powers(&lateness->preempted, shown->preempted_powers);
	finish_worst(lateness, shown);
	return finish_tasks(lateness, shown) ?: finish_wakers(lateness, shown) ?:
	       finish_idle(lateness, shown) ?: finish_behind(lateness, shown);
}
