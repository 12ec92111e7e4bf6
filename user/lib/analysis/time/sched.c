// SPDX-License-Identifier: MIT
/*
 * Slices of one CPU come in order. Slices of several CPUs come nearly in order, each when it
 * ends. So a wait is known when the next slice of the task ends. A wait with a negative length
 * is ignored.
 */
#include <errno.h>
#include <stdlib.h>

#include "analysis/time/sched.h"
#include "analysis/trace/wanted.h"
#include "base/table.h"

struct kb_sched {
	struct kb_table tasks;
	struct kb_sched_cpu *cpus;
	uint32_t max_cores;
	const struct kb_wanted *wanted;	/* NULL: all counts */
	void (*take_wait)(void *context, const struct kb_wait *wait);
	void *context;
};

int kb_sched_create(struct kb_sched **out, uint32_t max_cores, struct kb_error *err)
{
	struct kb_sched *sched = calloc(1, sizeof(*sched));

	if (sched)
		sched->cpus = calloc((size_t)max_cores + 1, sizeof(*sched->cpus));
	if (!sched || !sched->cpus) {
		free(sched);
		return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory for %u CPUs",
				    max_cores);
	}
	sched->max_cores = max_cores;
	kb_table_init(&sched->tasks, sizeof(struct kb_sched_task), 1);
	*out = sched;
	return 0;
}

void kb_sched_destroy(struct kb_sched *sched)
{
	uint32_t i;

	if (!sched)
		return;
	for (i = 0; i < sched->max_cores; i++)
		free(sched->cpus[i].states);
	free(sched->cpus);
	kb_table_release(&sched->tasks);
	free(sched);
}

void kb_sched_filter(struct kb_sched *sched, const struct kb_wanted *wanted)
{
	sched->wanted = wanted;
}

static bool counts(const struct kb_sched *sched, uint32_t core)
{
	return !sched->wanted || kb_wanted_cpu(sched->wanted, core);
}

/* Does what happens on @core at this moment count? */
static bool counts_at(const struct kb_sched *sched, uint32_t core, int64_t ns)
{
	return counts(sched, core) && (!sched->wanted || kb_wanted_time(sched->wanted, ns));
}

static bool counts_task(const struct kb_sched *sched, uint64_t task_id, uint64_t ticks)
{
	return !sched->wanted || kb_wanted_task(sched->wanted, (uint32_t)task_id, ticks);
}

static uint64_t span(const struct kb_sched *sched, int64_t start, int64_t end)
{
	return sched->wanted ? kb_wanted_span(sched->wanted, start, end) :
			       (uint64_t)end - (uint64_t)start;
}

static int add_idle(const struct kb_sched *sched, struct kb_sched_cpu *cpu,
		    const struct kb_slice *slice)
{
	uint64_t ns = span(sched, slice->start, slice->end);
	unsigned int index = slice->idle_state + 1;
	struct kb_sched_state *state;

	if (!ns && !counts_at(sched, slice->core, slice->end))
		return 0;
	if (!cpu->states)
		cpu->states = calloc(KB_SCHED_STATES, sizeof(*cpu->states));
	if (!cpu->states)
		return -ENOMEM;
	state = &cpu->states[index < KB_SCHED_STATES ? index : 0];
	state->count++;
	state->ns += ns;
	if (ns > state->longest_ns)
		state->longest_ns = ns;
	cpu->halted_ns += ns;
	return 0;
}

static void add_wait(struct kb_sched_task *task, uint64_t ns)
{
	if (task->waits_blocked)
		task->blocked_ns += ns;
	else
		task->preempted_ns += ns;
	if (ns <= task->longest_ns)
		return;
	task->longest_ns = ns;
	task->longest_at = task->waits_since;
	task->longest_blocked = task->waits_blocked;
	task->longest_asleep = task->waits_asleep;
}

/* @task runs again: account for the wait that ends now. */
static void end_wait(const struct kb_sched *sched, struct kb_sched_task *task, int64_t now,
		     uint64_t timestamp)
{
	uint64_t ns = span(sched, task->waits_since, now);
	struct kb_wait wait = {
		.task_id = task->key,
		.core = task->last_core,
		.mark = task->mark,
		.ticks = task->mark_ticks,
		.blocked = task->waits_blocked,
		.asleep = task->waits_asleep,
		.since = task->waits_since,
		.ns = (uint64_t)now - (uint64_t)task->waits_since,
		.waker = task->waker,
		.woken = task->woken,
	};

	if (!task->waits || now < task->waits_since)
		return;
	task->waits = false;
	if (!counts(sched, task->last_core))
		return;
	if (counts_task(sched, task->key, task->mark_ticks ?: timestamp))
		add_wait(task, ns);
	if (sched->take_wait)
		sched->take_wait(sched->context, &wait);
}

/* A task has the name that it had when it counted last. */
static void see(const struct kb_sched *sched, struct kb_sched_task *task, uint64_t counted,
		uint64_t timestamp)
{
	if (!sched->wanted || counted || !task->last_seen)
		task->last_seen = timestamp;
}

static int add_run(struct kb_sched *sched, struct kb_sched_cpu *cpu,
		   const struct kb_slice *slice, uint64_t timestamp)
{
	uint64_t key = slice->task_id;
	struct kb_sched_task *task = kb_table_get(&sched->tasks, &key);
	uint64_t ns = span(sched, slice->start, slice->end);
	bool wanted = counts(sched, slice->core) && counts_task(sched, key, timestamp);

	if (!task)
		return -ENOMEM;
	if (counts(sched, slice->core))
		*(slice->task_id ? &cpu->busy_ns : &cpu->awake_ns) += ns;
	if (wanted)
		task->run_ns += ns;
	see(sched, task, ns, timestamp);
	if (!slice->task_id)	/* the idle tasks of all CPUs share id 0 */
		return 0;
	if (task->waits)
		end_wait(sched, task, slice->start, timestamp);
	task->migrations += task->seen && task->last_core != slice->core && wanted &&
			    counts_at(sched, slice->core, slice->start);
	task->seen = true;
	task->last_core = slice->core;
	return 0;
}

/*
 * Whether a task that a switch took off the CPU in @state is asleep. In TASK_UNINTERRUPTIBLE it
 * is not, unless the state is TASK_IDLE, in which kernel threads sleep.
 */
static bool is_asleep(int state)
{
	return state > 0 && (state & KB_TASK_IDLE) != KB_TASK_UNINTERRUPTIBLE;
}

/* Account for the switch that ended @slice, a run or a halt of the idle task. */
static int add_switch(struct kb_sched *sched, struct kb_sched_cpu *cpu,
		      const struct kb_slice *slice, uint64_t timestamp)
{
	uint64_t key = slice->task_id;
	const unsigned int once = counts_at(sched, slice->core, slice->end);
	struct kb_sched_task *task;

	cpu->switches += once;
	if (slice->has_task) {
		task = kb_table_get(&sched->tasks, &key);
		if (!task)
			return -ENOMEM;
		*(slice->how == KB_END_BLOCKED ? &task->blocked : &task->preempted) +=
			once && counts_task(sched, key, timestamp);
		task->waits = slice->task_id != 0;
		task->waits_blocked = slice->how == KB_END_BLOCKED;
		task->waits_asleep = task->waits_blocked && is_asleep(slice->prev_state);
		task->waits_since = slice->end;
		task->mark = 0;
		task->mark_ticks = 0;
		task->waker = (struct kb_origin){ .kind = KB_TILE_UNKNOWN };
	}
	key = slice->next_task;
	task = kb_table_get(&sched->tasks, &key);
	if (!task)
		return -ENOMEM;
	task->runs += once && counts_task(sched, key, timestamp);
	see(sched, task, once, timestamp);
	return 0;
}

int kb_sched_add(struct kb_sched *sched, const struct kb_slice *slice, uint64_t timestamp)
{
	struct kb_sched_cpu *cpu;
	int ret = 0;

	if (slice->core >= sched->max_cores || slice->end < slice->start)
		return 0;
	cpu = &sched->cpus[slice->core];
	cpu->seen |= counts(sched, slice->core);
	switch (slice->kind) {
	case KB_SLICE_RUN:
		ret = add_run(sched, cpu, slice, timestamp);
		break;
	case KB_SLICE_IDLE:
		ret = counts(sched, slice->core) ? add_idle(sched, cpu, slice) : 0;
		break;
	case KB_SLICE_LOST:
		cpu->lost_ns += span(sched, slice->start, slice->end);
		cpu->lost += slice->lost;
		break;
	}
	if (!ret && (slice->how == KB_END_PREEMPTED || slice->how == KB_END_BLOCKED))
		ret = add_switch(sched, cpu, slice, timestamp);
	return ret;
}

void kb_sched_on_wait(struct kb_sched *sched,
		      void (*take)(void *context, const struct kb_wait *wait), void *context)
{
	sched->take_wait = take;
	sched->context = context;
}

void kb_sched_mark(struct kb_sched *sched, uint32_t task_id, uint32_t mark, uint64_t ticks)
{
	uint64_t key = task_id;
	struct kb_sched_task *task = kb_table_find(&sched->tasks, &key);

	if (!task || !task->waits)
		return;
	task->mark = mark;
	task->mark_ticks = ticks;
}

void kb_sched_woken(struct kb_sched *sched, uint32_t task_id, const struct kb_origin *waker,
		    uint64_t ticks)
{
	uint64_t key = task_id;
	struct kb_sched_task *task = kb_table_find(&sched->tasks, &key);

	if (!task || !task->waits || !task->waits_blocked || task->waker.kind != KB_TILE_UNKNOWN)
		return;
	task->waker = *waker;
	task->woken = ticks;
}

/* Nothing of the task counts. */
static bool is_empty(const struct kb_sched_task *task)
{
	return !task->run_ns && !task->runs && !task->preempted && !task->blocked &&
	       !task->preempted_ns && !task->blocked_ns;
}

static int compare_tasks(const void *left, const void *right)
{
	const struct kb_sched_task *a = left, *b = right;

	if (a->run_ns != b->run_ns)
		return a->run_ns > b->run_ns ? -1 : 1;
	if (is_empty(a) != is_empty(b))
		return is_empty(b) ? -1 : 1;
	return (a->key > b->key) - (a->key < b->key);
}

const struct kb_sched_task *kb_sched_tasks(struct kb_sched *sched, uint32_t *nr)
{
	*nr = sched->tasks.nr;
	if (*nr)
		qsort(sched->tasks.rows, *nr, sizeof(struct kb_sched_task), compare_tasks);
	while (sched->wanted && *nr && is_empty(kb_table_row(&sched->tasks, *nr - 1)))
		--*nr;
	return (const struct kb_sched_task *)sched->tasks.rows;
}

const struct kb_sched_cpu *kb_sched_cpu(const struct kb_sched *sched, uint32_t core)
{
	return &sched->cpus[core];
}
