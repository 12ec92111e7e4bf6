// SPDX-License-Identifier: MIT
/*
 * A small state machine for each task. Linux writes the record of a wakeup before it looks whether
 * the task still runs. If the task still runs, the wakeup ends the wait that begins when it leaves
 * its CPU, unless it leaves because of a preemption: then the wakeup came before the task could
 * sleep, and is over.
 *
 * If only some tasks were recorded, a switch has a record if one of its two tasks is recorded, and
 * a wakeup if the woken task is, or the one that runs. So of other tasks only some records are
 * there, and what looks like one wait may be several. Which tasks are recorded is not in the
 * capture. But the idle task never is: who follows it or is followed by it in a record must be. In
 * the same way a task that has run without a switch to it is not recorded.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/latency/wakeups.h"
#include "analysis/time/death.h"
#include "analysis/time/waker.h"
#include "base/table.h"

#define FORGET_MIN	4096U	/* rows of tasks that have ended are kept up to then */

enum task_state {
	TASK_UNKNOWN = 0,
	TASK_RUNS,
	TASK_BLOCKED,		/* waits for something else than a CPU */
	TASK_WOKEN,		/* could run since a wakeup */
	TASK_PREEMPTED,		/* could run since it left its CPU */
};

struct task {
	uint64_t key;			/* the task id */
	uint8_t state;			/* enum task_state */
	bool woken_early;		/* while it ran: the wakeup below may be of the next wait */
	bool is_new;
	bool is_off;			/* it left its CPU at off_at, and has not run since */
	bool was_preempted;		/* ... and could have run on */
	bool gone;			/* it has ended */
	bool recorded, not_recorded;	/* if only some are: what is known of this one */
	struct kb_object object;	/* what it waits for off its CPU */
	struct kb_origin waker;
	uint32_t waker_core, interrupted;
	uint32_t core;			/* the CPU in whose queue it is, as far as known */
	uint32_t moves;
	int64_t off_at;			/* ns: when it left its CPU */
	int64_t since;			/* ns: when it could run */
	int64_t there_since;		/* ns: when it came into this queue */
	uint64_t parts[KB_PARTS];	/* ns, of the wait before there_since */
};

struct kb_wakeups {
	struct kb_wakeups_parts parts;
	struct kb_lateness *lateness;	/* NULL: others take the waits */
	struct kb_table tasks;
	uint32_t max_cores;
	uint32_t *wakes;		/* max_cores: the task that the last record there wakes */
	bool some;			/* only some tasks were recorded */
	const struct kb_header *header;
	uint32_t nr_gone;		/* rows of tasks that have ended, about */
	bool has_woken;			/* the last record is of a task that runs after a wakeup: */
	struct kb_woken woken;
	uint64_t cut, unexplained, filtered, unsure;
};

int kb_wakeups_create(struct kb_wakeups **out, const struct kb_wakeups_parts *parts)
{
	const struct kb_barman *barman = kb_trace_barman(parts->wanted->trace);
	const char *filter = kb_barman_fact(barman, "filter");
	struct kb_wakeups *wakeups = calloc(1, sizeof(*wakeups));
	int ret;

	if (!wakeups)
		return -ENOMEM;
	wakeups->parts = *parts;
	wakeups->max_cores = kb_barman_header(barman)->max_cores;
	wakeups->wakes = calloc((size_t)wakeups->max_cores + 1, sizeof(*wakeups->wakes));
	ret = wakeups->wakes ? 0 : -ENOMEM;
	if (!ret && !parts->take)
		ret = kb_lateness_create(&wakeups->lateness, parts->wanted->trace, parts->history);
	if (ret) {
		free(wakeups->wakes);
		free(wakeups);
		return ret;
	}
	kb_table_init(&wakeups->tasks, sizeof(struct task), 1);
	wakeups->header = kb_barman_header(barman);
	wakeups->some = parts->only_some || (filter && strcmp(filter, "none") != 0);
	*out = wakeups;
	return 0;
}

void kb_wakeups_destroy(struct kb_wakeups *wakeups)
{
	if (!wakeups)
		return;
	kb_lateness_destroy(wakeups->lateness);
	kb_table_release(&wakeups->tasks);
	free(wakeups->wakes);
	free(wakeups);
}

static struct task *get_task(struct kb_wakeups *wakeups, uint32_t task_id)
{
	uint64_t key = task_id;

	return kb_table_get(&wakeups->tasks, &key);
}

/*
 * Ids of tasks may be millions. So when most rows are of tasks that have ended, those go. A task whose
 * id comes again is another one.
 */
static int forget_gone(struct kb_wakeups *wakeups)
{
	struct kb_table tasks;
	uint32_t i;

	if (wakeups->nr_gone < FORGET_MIN || wakeups->nr_gone < wakeups->tasks.nr / 2)
		return 0;
	kb_table_init(&tasks, sizeof(struct task), 1);
	for (i = 0; i < wakeups->tasks.nr; i++) {
		const struct task *from = kb_table_row(&wakeups->tasks, i);
		struct task *to = from->gone ? NULL : kb_table_get(&tasks, &from->key);

		if (to)
			*to = *from;
		else if (!from->gone) {
			kb_table_release(&tasks);
			return -ENOMEM;
		}
	}
	kb_table_release(&wakeups->tasks);
	wakeups->tasks = tasks;
	wakeups->nr_gone = 0;
	return 0;
}

/* ---- a wait ends ---- */

/* The time that @task is off its CPU, of @core. */
static struct kb_off off_of(const struct task *task, uint32_t core, bool sure)
{
	return (struct kb_off){
		.task_id = (uint32_t)task->key,
		.core = core,
		.preempted = task->was_preempted,
		.object = task->object,
		.sure = sure,
		.since = task->off_at,
	};
}

/* The time off a CPU of @task ends, because it runs. */
static int end_off(struct kb_wakeups *wakeups, struct task *task, const struct kb_walk *walk)
{
	const struct kb_off off = off_of(task, walk->event.core, !wakeups->some || task->recorded);
	bool was_off = task->is_off;

	task->is_off = false;
	if (!was_off || !wakeups->parts.take_off || walk->ns < off.since)
		return 0;
	return wakeups->parts.take_off(wakeups->parts.context, &off);
}

int kb_wakeups_off(const struct kb_wakeups *wakeups, kb_off_take take, void *context)
{
	int ret = 0;

	for (uint32_t i = 0; i < wakeups->tasks.nr && !ret; i++) {
		const struct task *task = kb_table_row(&wakeups->tasks, i);
		const struct kb_off off = off_of(task, task->core, !wakeups->some);

		if (task->is_off && !task->gone)
			ret = take(context, &off);
	}
	return ret;
}

/* What the wait since there_since on @core consists of, up to @now. */
static void split(const struct kb_wakeups *wakeups, struct task *task, uint32_t core, int64_t now)
{
	int64_t from = task->there_since, until = now;
	struct kb_tile tile;

	if (!wakeups->parts.history)
		return;
	/* what that CPU still does is not in its history */
	if (kb_tiles_now(wakeups->parts.tiles, core, &tile) && tile.start < now) {
		until = tile.start > from ? tile.start : from;
		task->parts[kb_history_part(tile.kind)] += (uint64_t)now - (uint64_t)until;
	}
	kb_history_split(wakeups->parts.history, core, from, until, task->parts);
}

static void begin_wait(struct task *task, enum task_state state, int64_t since)
{
	static const uint64_t none[KB_PARTS];

	task->state = state;
	task->since = task->there_since = since;
	task->moves = 0;
	memcpy(task->parts, none, sizeof(none));
}

static struct kb_late late_of(const struct kb_wakeups *wakeups, const struct task *task,
			      const struct kb_walk *walk)
{
	struct kb_late late = {
		.wait = {
			.task_id = (uint32_t)task->key,
			.core = walk->event.core,
			.preempted = task->state == TASK_PREEMPTED,
			.is_new = task->is_new,
			.waker = task->waker,
			.waker_core = task->waker_core,
			.interrupted = task->interrupted,
			.idle_state = KB_STATE_UNKNOWN,
			.moves = task->moves,
			.ticks = walk->event.timestamp,
			.since = task->since,
			.ns = (uint64_t)walk->ns - (uint64_t)task->since,
		},
		.there_since = task->there_since,
	};

	memcpy(late.wait.parts, task->parts, sizeof(task->parts));
	late.wait.has_left = wakeups->parts.history &&
			     kb_history_halted(wakeups->parts.history, walk->event.core,
					       task->there_since, &late.wait.idle_state,
					       &late.left) &&
			     late.left <= walk->ns;
	return late;
}

/* Is a wait since @since, which ends now, one of those that are asked for? */
static bool is_wanted(const struct kb_wakeups *wakeups, uint64_t task_id, int64_t since,
		      const struct kb_walk *walk)
{
	const struct kb_wanted *wanted = wakeups->parts.wanted;

	return kb_wanted_cpu(wanted, walk->event.core) && kb_wanted_time(wanted, since) &&
	       kb_wanted_task(wanted, (uint32_t)task_id, walk->event.timestamp);
}

/* The wait of @task ends, because it runs. */
static int end_wait(struct kb_wakeups *wakeups, struct task *task, const struct kb_walk *walk)
{
	struct kb_late late;

	if (walk->ns < task->there_since)
		return 0;		/* records that are out of order */
	if (!is_wanted(wakeups, task->key, task->since, walk)) {
		wakeups->filtered++;
		return 0;
	}
	if (wakeups->some && !task->recorded) {
		wakeups->unsure++;
		return 0;
	}
	if (kb_gaps_overlap(wakeups->parts.gaps, task->since, walk->ns)) {
		wakeups->cut++;
		return 0;
	}
	split(wakeups, task, walk->event.core, walk->ns);
	late = late_of(wakeups, task, walk);
	if (wakeups->parts.take)
		return wakeups->parts.take(wakeups->parts.context, &late);
	return kb_lateness_add(wakeups->lateness, &late);
}

/* ---- records ---- */

static int runs(struct kb_wakeups *wakeups, const struct kb_walk *walk)
{
	struct task *task = get_task(wakeups, walk->event.task_id);
	int ret = 0;

	if (!task)
		return -ENOMEM;
	task->is_off &= !task->gone;
	task->gone = false;
	if (end_off(wakeups, task, walk))
		return -ENOMEM;
	if (task->state == TASK_BLOCKED && task->woken_early)
		begin_wait(task, TASK_WOKEN, task->off_at);
	wakeups->has_woken = task->state == TASK_WOKEN;
	wakeups->woken = (struct kb_woken){ task->waker, task->waker_core };
	if (task->state == TASK_WOKEN || task->state == TASK_PREEMPTED)
		ret = end_wait(wakeups, task, walk);
	else if (task->state == TASK_BLOCKED)
		wakeups->unexplained += is_wanted(wakeups, task->key, task->off_at, walk);
	task->state = TASK_RUNS;
	task->woken_early = false;
	task->core = walk->event.core;
	return ret;
}

/* The task that a switch takes off its CPU never runs again. */
static bool has_ended(const struct kb_wakeups *wakeups, const struct kb_walk *walk)
{
	return walk->event.task_switch.reason == KB_SWITCH_BLOCKED &&
	       kb_is_death(wakeups->header, walk->event.task_switch.prev_state);
}

static int leaves(struct kb_wakeups *wakeups, const struct kb_walk *walk)
{
	struct task *task = get_task(wakeups, walk->running);

	if (!task)
		return -ENOMEM;
	task->off_at = walk->ns;
	task->is_off = true;
	task->was_preempted = walk->event.task_switch.reason != KB_SWITCH_BLOCKED;
	task->object = walk->event.task_switch.object;
	task->core = walk->event.core;
	if (has_ended(wakeups, walk)) {
		wakeups->nr_gone += !task->gone;
		task->gone = true;
	}
	if (walk->event.task_switch.reason == KB_SWITCH_BLOCKED) {
		/* woken before the first record of it: it ran then */
		task->woken_early |= task->state == TASK_WOKEN;
		task->state = TASK_BLOCKED;
		return 0;
	}
	task->woken_early = false;
	begin_wait(task, TASK_PREEMPTED, walk->ns);
	return 0;
}

/* One of the two tasks of a switch is recorded. */
static int learn_switch(struct kb_wakeups *wakeups, const struct kb_walk *walk)
{
	uint64_t key = walk->running;
	struct task *before = kb_table_find(&wakeups->tasks, &key), *next;
	bool not_before = !walk->running || (before && before->not_recorded);

	if (!walk->known)
		return 0;
	if (walk->event.task_id && not_before) {
		next = get_task(wakeups, walk->event.task_id);
		if (!next)
			return -ENOMEM;
		next->recorded = true;
	} else if (!walk->event.task_id && before) {
		before->recorded = !before->not_recorded;
	}
	return 0;
}

/* Another task runs than the last switch said, so neither is recorded. */
static int learn_running(struct kb_wakeups *wakeups, const struct kb_walk *walk)
{
	uint64_t key = walk->running;
	struct task *task = kb_table_find(&wakeups->tasks, &key);

	if (!walk->known || walk->running == walk->event.task_id)
		return 0;
	if (task) {
		task->not_recorded = true;
		task->recorded = false;
	}
	if (!walk->event.task_id)
		return 0;
	task = get_task(wakeups, walk->event.task_id);
	if (!task)
		return -ENOMEM;
	task->not_recorded = true;
	return 0;
}

static int feed_switch(struct kb_wakeups *wakeups, const struct kb_walk *walk)
{
	int ret = wakeups->some ? learn_switch(wakeups, walk) : 0;

	if (ret)
		return ret;
	if (walk->known && walk->running)
		ret = leaves(wakeups, walk);
	if (!ret && walk->event.task_id)
		ret = runs(wakeups, walk);
	return ret;
}

static int feed_waking(struct kb_wakeups *wakeups, const struct kb_walk *walk)
{
	const struct kb_event *event = &walk->event;
	struct task *task = get_task(wakeups, event->custom_counter.id);

	if (!task)
		return -ENOMEM;
	if (task->gone) {
		task->gone = task->is_off = false;
		task->state = TASK_UNKNOWN;
	}
	task->recorded |= !event->task_id && !task->not_recorded;
	/* the task that runs here has not gone to sleep yet, whoever wakes it */
	if (task->key == event->task_id)
		return 0;
	if (!task->key || (task->state == TASK_PREEMPTED &&
			   !kb_gaps_overlap(wakeups->parts.gaps, task->since, walk->ns)))
		return 0;
	if (wakeups->parts.tiles)
		task->waker = kb_waker(wakeups->parts.tiles, event);
	task->waker_core = event->core;
	task->interrupted = event->task_id;
	task->is_new = event->custom_counter.what == KB_WHAT_WAKING_NEW;
	if (task->state == TASK_RUNS) {
		task->woken_early = true;
		return 0;
	}
	task->core = event->custom_counter.cpu;
	begin_wait(task, TASK_WOKEN, walk->ns);
	return 0;
}

/*
 * A waiting task goes to another queue. The CPU that wakes chooses a queue right behind the record of
 * the wakeup, with interrupts off. Until then the task is in none.
 */
static int feed_migrate(struct kb_wakeups *wakeups, const struct kb_walk *walk)
{
	const struct kb_event *event = &walk->event;
	uint64_t key = event->custom_counter.id;
	struct task *task = kb_table_find(&wakeups->tasks, &key);
	bool wakes = event->core < wakeups->max_cores && wakeups->wakes[event->core] == key;

	if (!task)
		return 0;
	if (walk->ns >= task->there_since &&
	    (task->state == TASK_WOKEN || task->state == TASK_PREEMPTED)) {
		if (task->state == TASK_WOKEN && !task->moves && wakes)
			task->parts[KB_PART_WAKING] +=
				(uint64_t)walk->ns - (uint64_t)task->there_since;
		else
			split(wakeups, task, task->core, walk->ns);
		task->there_since = walk->ns;
		task->moves++;
	}
	task->core = event->custom_counter.cpu;
	return 0;
}

/* What the task does that ran in front of the gap is not known. */
static void feed_loss(struct kb_wakeups *wakeups, const struct kb_walk *walk)
{
	uint64_t key = walk->running;
	struct task *task = walk->known ? kb_table_find(&wakeups->tasks, &key) : NULL;

	if (task) {
		task->state = TASK_UNKNOWN;
		task->is_off = false;
	}
}

static bool is_waking(const struct kb_event *event)
{
	return event->type == KB_EVENT_CUSTOM_COUNTER &&
	       (event->custom_counter.what == KB_WHAT_WAKING ||
		event->custom_counter.what == KB_WHAT_WAKING_NEW);
}

/* Samples may come with an NMI at any moment. */
static void note_waking(struct kb_wakeups *wakeups, const struct kb_event *event)
{
	if (event->core < wakeups->max_cores && event->type != KB_EVENT_SAMPLE)
		wakeups->wakes[event->core] = is_waking(event) ? event->custom_counter.id : 0;
}

static int feed(struct kb_wakeups *wakeups, const struct kb_walk *walk)
{
	if (walk->event.type == KB_EVENT_TASK_SWITCH)
		return feed_switch(wakeups, walk);
	if (walk->event.type != KB_EVENT_CUSTOM_COUNTER)
		return 0;
	if (walk->nr_slices)
		feed_loss(wakeups, walk);
	if (wakeups->some && walk->event.custom_counter.what && learn_running(wakeups, walk))
		return -ENOMEM;
	switch (walk->event.custom_counter.what) {
	case KB_WHAT_WAKING:
	case KB_WHAT_WAKING_NEW:
		return feed_waking(wakeups, walk);
	case KB_WHAT_MIGRATE:
		return feed_migrate(wakeups, walk);
	default:
		return 0;
	}
}

int kb_wakeups_feed(struct kb_wakeups *wakeups, const struct kb_walk *walk)
{
	int ret;

	wakeups->has_woken = false;
	ret = forget_gone(wakeups) ?: feed(wakeups, walk);
	note_waking(wakeups, &walk->event);
	return ret;
}

const struct kb_woken *kb_wakeups_woken(const struct kb_wakeups *wakeups)
{
	return wakeups->has_woken ? &wakeups->woken : NULL;
}

int kb_wakeups_finish(struct kb_wakeups *wakeups, struct kb_latency *shown)
{
	shown->gaps = wakeups->parts.gaps->nr;
	shown->cut = wakeups->cut;
	shown->unexplained = wakeups->unexplained;
	shown->filtered = wakeups->filtered;
	shown->unsure = wakeups->unsure;
	return wakeups->lateness ? kb_lateness_finish(wakeups->lateness, shown) : 0;
}
