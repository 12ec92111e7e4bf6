// SPDX-License-Identifier: MIT
/*
 * One walk. Tiles say what each CPU did; a task is on one of them, or away since its last switch.
 * Each task has a moment up to which its time is accounted for, which only goes on, so its
 * classes add up to its life whatever the records say. What is not decided when it happens waits
 * in `undecided` for the record of the call or fault.
 *
 * What a task did while records were lost is not known, wherever they were: it may have run
 * there. So the gaps are found before, if the capture lacks anything.
 *
 * If only some tasks were recorded, others have the records of those switches that are from or to
 * a recorded one. Who makes a call or a fault, or says what it waits for, is recorded; of all
 * others nothing is known, nor whether a CPU idles that does not halt.
 *
 * Memory use grows with tasks, their calls and what they wait for, not with records.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <kbarman/waits.h>

#include "analysis/classes/table.h"
#include "analysis/facts/sources.h"
#include "analysis/facts/stops.h"
#include "analysis/latency/inferred.h"
#include "analysis/time/death.h"
#include "analysis/time/ended.h"
#include "analysis/time/gaps.h"
#include "analysis/time/origin.h"
#include "analysis/time/waker.h"
#include "analysis/trace/parts.h"
#include "base/options.h"
#include "format/call_names.h"

enum state { GONE, ON_CPU, RUNNABLE, WAITS };

struct task {
	uint64_t key;			/* its id */
	enum state state;
	bool is_program, is_kernel;	/* neither: not known yet */
	uint32_t core;
	uint32_t group;
	uint64_t wait;			/* what it waits for */
	int64_t at;			/* ns: what is in front of this is accounted for */
	int64_t since;			/* ns: since when it lives in its group */
	/*
	 * In which call it was when it blocked last, and when it did so first, since its last
	 * call ended, and which one that was. Linux does what is left of a call after its end,
	 * too, such as the last part of close(2), and says then that the task is in it.
	 */
	struct kb_decision call, first, last;
	int64_t first_at;		/* ns, if `first` is known */
	struct kb_undecided undecided;
};

struct cpu {
	int64_t done;			/* ns: what is in front of this is accounted for */
	bool offline;
};

struct classes {
	struct kb_classes shown;	/* the results; the first member */
	struct kb_class_table table;
	struct kb_trace *trace;
	struct kb_tiles *tiles;
	struct kb_gaps gaps;
	struct kb_table tasks;
	struct cpu *cpus;
	struct kb_decider decider;
	uint32_t stop_series;
	bool has_objects;		/* programs have one whenever they block */
	bool is_other;			/* what is decided now is of a task that is not recorded */
	uint64_t ticks;			/* of the current record */
	int walked;			/* what the last step of the walk said */
};

static int no_memory(struct kb_error *err)
{
	return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
}

static struct kb_decision decision(enum kb_class kind)
{
	return (struct kb_decision){ .kind = kind };
}

static int take(void *context, uint32_t core, uint32_t group, uint64_t ns,
		const struct kb_decision *is)
{
	static const struct kb_decision not_known = { .kind = KB_CLASS_UNKNOWN };
	struct classes *classes = context;

	return kb_class_table_take(&classes->table, core, group, ns,
				   classes->is_other ? &not_known : is);
}

/* ---- lives of tasks ---- */

/* All that is undecided of @task is that, and what was surely in a call is @call. */
static int decide(struct classes *classes, struct task *task, struct kb_decision is,
		  struct kb_decision call)
{
	return kb_undecided_end(&task->undecided, &is, &call, &classes->decider);
}

static bool is_recorded(const struct classes *classes, const struct task *task)
{
	return task->is_program || !classes->shown.only_some;
}

static bool is_same(const struct kb_decision *call, const struct kb_decision *other)
{
	return call->known && other->known && call->number == other->number &&
	       call->compat == other->compat;
}

/* The call that has not ended in the capture, and what is in front of it. */
static int leave_undecided(struct classes *classes, struct task *task)
{
	struct kb_decision earlier = task->call, call = task->call;
	int ret;

	earlier.kind = KB_CLASS_RUNNING;
	earlier.known = call.known && classes->shown.has_calls;
	if (!call.known || !is_same(&call, &task->first) || is_same(&call, &task->last))
		call.kind = KB_CLASS_RUNNING;
	classes->is_other = !is_recorded(classes, task);
	ret = decide(classes, task, earlier, call);
	classes->is_other = false;
	return ret;
}

static void leave_group(struct classes *classes, const struct task *task)
{
	kb_class_table_live(&classes->table, task->group,
			    kb_wanted_span(&classes->table.wanted, task->since, task->at));
}

/* The task has another name now, perhaps. Its time is accounted for. */
static int see_name(struct classes *classes, struct task *task)
{
	uint32_t group;

	if (kb_class_table_group(&classes->table, (uint32_t)task->key, classes->ticks, &group))
		return -ENOMEM;
	if (group == task->group)
		return 0;
	leave_group(classes, task);
	task->group = group;
	task->since = task->at;
	if (is_recorded(classes, task))
		kb_class_table_show(&classes->table, group);
	return 0;
}

static int begin_life(struct classes *classes, struct task *task, enum state state, uint32_t core,
		      int64_t ns)
{
	task->state = state;
	task->core = core;
	task->is_program = task->is_kernel = false;
	task->call = task->first = task->last = decision(KB_CLASS_CALL);
	task->at = task->since = ns;
	if (kb_class_table_group(&classes->table, (uint32_t)task->key, classes->ticks,
				 &task->group))
		return -ENOMEM;
	if (is_recorded(classes, task))
		kb_class_table_show(&classes->table, task->group);
	return 0;
}

static int end_life(struct classes *classes, struct task *task)
{
	task->state = GONE;
	leave_group(classes, task);
	return leave_undecided(classes, task);
}

/* Records of @task may be lost: one of these could have ended its call. */
static void doubt(struct task *task)
{
	task->call.known = task->first.known = task->last.known = false;
	kb_undecided_doubt(&task->undecided);
}

/* What @task did off the CPU, until @ns. */
static int settle_away(struct classes *classes, struct task *task, int64_t ns)
{
	const struct kb_wanted *wanted = &classes->table.wanted;
	int64_t from = kb_wanted_nearest(wanted, task->at), until = kb_wanted_nearest(wanted, ns);
	uint64_t lost = kb_gaps_ns(&classes->gaps, from, until);
	enum kb_class kind = task->state == WAITS ? KB_CLASS_WAIT : KB_CLASS_RUNNABLE;

	return kb_class_table_away(&classes->table, task->core, task->group,
				   (uint64_t)until - (uint64_t)from - lost, kind, task->wait)
		       ?: kb_class_table_away(&classes->table, task->core, task->group, lost,
					      KB_CLASS_UNKNOWN, 0);
}

/* Account for the time of @task until @ns. */
static int settle(struct classes *classes, struct task *task, int64_t ns)
{
	int ret;

	if (ns <= task->at)
		return 0;
	if (kb_gaps_overlap(&classes->gaps, task->at, ns))
		doubt(task);
	if (task->state == ON_CPU)	/* no record says what it did */
		ret = kb_class_table_away(&classes->table, task->core, task->group,
					  kb_wanted_span(&classes->table.wanted, task->at, ns),
					  KB_CLASS_UNKNOWN, 0);
	else
		ret = settle_away(classes, task, ns);
	task->at = ns;
	return ret;
}

/* @task_id is seen on @core at @ns. NULL without memory. */
static struct task *see(struct classes *classes, uint32_t task_id, uint32_t core, int64_t ns)
{
	uint64_t key = task_id;
	struct task *task = kb_table_get(&classes->tasks, &key);

	if (!task)
		return NULL;
	if (task->state == GONE)
		return begin_life(classes, task, ON_CPU, core, ns) ? NULL : task;
	if (settle(classes, task, ns))
		return NULL;
	task->state = ON_CPU;
	task->core = core;
	return task;
}

/* ---- tiles ---- */

static enum kb_class class_of(const struct classes *classes, const struct kb_tile *tile,
			      const struct cpu *cpu)
{
	switch (tile->kind) {
	case KB_TILE_SOFTIRQ:
		return KB_CLASS_SOFTIRQ;
	case KB_TILE_IRQ:
	case KB_TILE_IPI:
		return KB_CLASS_IRQ;
	case KB_TILE_IDLE:
		return classes->shown.only_some ? KB_CLASS_UNKNOWN : KB_CLASS_IDLE;
	case KB_TILE_HALT:
		return KB_CLASS_IDLE;
	case KB_TILE_UNKNOWN:
		return cpu->offline ? KB_CLASS_OFFLINE : KB_CLASS_UNKNOWN;
	default:
		return KB_CLASS_UNKNOWN;
	}
}

/* @task ran, in its own code or for itself in the kernel. */
static int run(struct classes *classes, struct task *task, uint32_t core, int64_t start,
	       int64_t end)
{
	const struct kb_wanted *wanted = &classes->table.wanted;
	struct kb_piece piece = {
		.start = kb_wanted_nearest(wanted, start), .end = kb_wanted_nearest(wanted, end),
		.core = core, .group = task->group,
	};
	struct kb_decision is = decision(task->is_kernel ? KB_CLASS_KERNEL : KB_CLASS_RUNNING);

	if (piece.end == piece.start)
		return 0;
	if (task->is_kernel ||
	    (is_recorded(classes, task) && !classes->shown.has_calls &&
	     !classes->shown.has_faults && (task->is_program || !classes->has_objects)))
		return take(classes, core, task->group, (uint64_t)piece.end - (uint64_t)piece.start,
			    &is);
	return kb_undecided_add(&task->undecided, &piece, &classes->decider);
}

/* A tile in the time of a task. */
static int add_of_task(struct classes *classes, const struct kb_tile *tile, int64_t start,
		       enum kb_class kind)
{
	const struct kb_wanted *wanted = &classes->table.wanted;
	struct task *task = see(classes, tile->task_id, tile->core, start);
	struct kb_decision is = decision(kind);
	int64_t from;

	if (!task)
		return -ENOMEM;
	/* It was on another CPU at that time: one of them is wrong. */
	from = task->at < tile->end ? task->at : tile->end;
	classes->table.cpus[tile->core][KB_CLASS_UNKNOWN] += kb_wanted_span(wanted, start, from);
	if (from == tile->end)
		return 0;
	task->at = tile->end;
	if (tile->kind == KB_TILE_TASK)
		return run(classes, task, tile->core, from, tile->end);
	return take(classes, tile->core, task->group, kb_wanted_span(wanted, from, tile->end), &is);
}

static int add_tile(struct classes *classes, const struct kb_tile *tile)
{
	struct cpu *cpu = &classes->cpus[tile->core];
	int64_t start = cpu->done > tile->start ? cpu->done : tile->start;
	enum kb_class kind = class_of(classes, tile, cpu);

	if (tile->end <= start)
		return 0;
	cpu->done = tile->end;
	cpu->offline &= tile->kind == KB_TILE_UNKNOWN || kb_origin_interrupts(tile->kind);
	if (tile->has_task && tile->task_id &&
	    (tile->kind == KB_TILE_TASK || kb_origin_interrupts(tile->kind)))
		return add_of_task(classes, tile, start, kind);
	classes->table.cpus[tile->core][kind] +=
		kb_wanted_span(&classes->table.wanted, start, tile->end);
	return 0;
}

/* The time of the task that has written @event is accounted for up to that. NULL without memory. */
static struct task *cut(struct classes *classes, const struct kb_event *event, int64_t now)
{
	uint64_t key = event->task_id;
	struct kb_tile tile;
	struct task *task;

	if (kb_tiles_now(classes->tiles, event->core, &tile) && tile.kind == KB_TILE_TASK &&
	    tile.task_id == event->task_id && add_tile(classes, &tile))
		return NULL;
	task = kb_table_get(&classes->tasks, &key);
	if (task && task->state == GONE && begin_life(classes, task, ON_CPU, event->core, now))
		return NULL;
	return task;
}

/* ---- records ---- */

static void become_program(struct classes *classes, struct task *task)
{
	task->is_program = true;
	task->is_kernel = false;
	kb_class_table_show(&classes->table, task->group);
}

/* What a task did before @begin, ns, when it was in its own code. */
static struct kb_decision what_before(const struct task *task, int64_t begin)
{
	if (!task->first.known || task->first_at >= begin)
		return decision(KB_CLASS_USER);
	return is_same(&task->first, &task->last) ? task->first : decision(KB_CLASS_RUNNING);
}

static int end_call(struct classes *classes, const struct kb_event *event, int64_t now)
{
	struct kb_decision call = {
		.kind = KB_CLASS_CALL, .known = true, .number = event->custom_counter.id,
		.compat = event->custom_counter.cpu & KB_SYSCALL_COMPAT,
	};
	int64_t begin = kb_barman_ns(kb_trace_barman(classes->trace), event->custom_counter.begin);
	struct kb_decision running = decision(KB_CLASS_RUNNING);
	struct task *task = cut(classes, event, now);
	int ret;

	if (!task)
		return -ENOMEM;
	become_program(classes, task);
	if (event->custom_counter.begin) {
		ret = kb_undecided_take(&task->undecided, begin, &call, &classes->decider) ?:
		      decide(classes, task, what_before(task, begin), running);
	} else if (kb_syscall_is_own(classes->table.names, event)) {
		running = call;
		running.kind = KB_CLASS_RUNNING;
		ret = decide(classes, task, running, call);
	} else {	/* it has lived in this call only */
		ret = decide(classes, task, call, call);
	}
	task->call.known = task->first.known = false;
	task->last = call;
	return ret ?: see_name(classes, task);
}

static int end_fault(struct classes *classes, const struct kb_event *event, int64_t now)
{
	struct kb_decision fault = {
		.kind = KB_CLASS_FAULT, .known = true, .number = kb_fault_kind(event),
	};
	int64_t begin = kb_barman_ns(kb_trace_barman(classes->trace), event->custom_counter.begin);
	struct task *task = kb_ended_is_timed(event) ? cut(classes, event, now) : NULL;
	struct kb_decision running = decision(KB_CLASS_RUNNING), is;
	int ret;

	if (!task)
		return kb_ended_is_timed(event) ? -ENOMEM : 0;
	ret = kb_undecided_take(&task->undecided, begin, &fault, &classes->decider);
	if (ret || !classes->shown.has_calls)
		return ret ?: decide(classes, task, running, running);
	if (event->custom_counter.cpu & KB_FAULT_KERNEL)
		return 0;
	/* What was in front of a fault of the program's own code was no call. */
	become_program(classes, task);
	is = what_before(task, begin);
	task->first.known = false;
	return decide(classes, task, is, running);
}

/* A wakeup: of a task that is @is_new, it is the first one. */
static int wake(struct classes *classes, const struct kb_event *event, int64_t now, bool is_new)
{
	uint64_t key = event->custom_counter.id;
	struct task *task = key ? kb_table_get(&classes->tasks, &key) : NULL;
	struct kb_origin waker;
	int ret = 0;

	if (!key)
		return 0;
	if (!task)
		return -ENOMEM;
	if (is_new && task->state != GONE)	/* another one had this number */
		ret = end_life(classes, task);
	if (ret || task->state == GONE)
		return ret ?: begin_life(classes, task, RUNNABLE, event->custom_counter.cpu, now);
	if (task->state != WAITS)
		return 0;
	if (!classes->has_objects) {
		waker = kb_waker(classes->tiles, event);
		task->wait = kb_class_table_infer(task->wait, kb_inferred_by_waker(classes->trace, &waker,
										   event->timestamp));
	}
	ret = settle(classes, task, now);
	task->state = RUNNABLE;
	return ret;
}

/* A blocking switch tells programs from tasks of the kernel, and calls from what is none. */
static int learn(struct classes *classes, struct task *task, const struct kb_object *object)
{
	if (object->kind == KB_OBJECT_NONE) {
		if (!classes->has_objects || classes->shown.only_some || task->is_program)
			return 0;
		task->is_kernel = true;
		return decide(classes, task, decision(KB_CLASS_KERNEL), decision(KB_CLASS_KERNEL));
	}
	become_program(classes, task);
	task->call.known = !kb_object_is_outside(object);
	task->call.number = object->call;
	task->call.compat = object->flags & KB_OBJECT_COMPAT;
	if (task->call.known && !task->first.known && classes->shown.has_calls) {
		task->first = task->call;
		task->first_at = task->at;
		kb_undecided_in_call(&task->undecided);
	}
	return classes->shown.has_calls || classes->shown.has_faults
		       ? 0
		       : leave_undecided(classes, task);
}

/* @task_id leaves its CPU. */
static int leave(struct classes *classes, const struct kb_event *event, uint32_t task_id,
		 int64_t now)
{
	struct task *task = see(classes, task_id, event->core, now);
	bool blocks = event->task_switch.reason != KB_SWITCH_PREEMPTED;

	if (!task || (blocks && learn(classes, task, &event->task_switch.object)))
		return -ENOMEM;
	if (blocks && kb_is_death(kb_trace_header(classes->trace), event->task_switch.prev_state))
		return end_life(classes, task);
	task->state = blocks ? WAITS : RUNNABLE;
	if (blocks && kb_class_table_wait(&classes->table, event, task_id, &task->wait))
		return -ENOMEM;
	if (blocks && !classes->has_objects)
		task->wait = kb_class_table_infer(task->wait,
						  kb_inferred_by_chain(classes->trace, event, task_id));
	return see_name(classes, task);
}

static int add_switch(struct classes *classes, const struct kb_event *event,
		      const struct kb_tile *before, int64_t now)
{
	struct task *task;
	int ret = before->has_task && before->task_id ? leave(classes, event, before->task_id, now)
						      : 0;

	if (ret || !event->task_id)
		return ret;
	task = see(classes, event->task_id, event->core, now);
	return task ? see_name(classes, task) : -ENOMEM;
}

static int add_record(struct classes *classes, const struct kb_event *event, int64_t now)
{
	switch (event->custom_counter.what) {
	case KB_WHAT_SYSCALL:
		return event->task_id ? end_call(classes, event, now) : 0;
	case KB_WHAT_FAULT:
		return event->task_id ? end_fault(classes, event, now) : 0;
	case KB_WHAT_WAKING:
	case KB_WHAT_WAKING_NEW:
		return wake(classes, event, now, event->custom_counter.what == KB_WHAT_WAKING_NEW);
	default:
		return 0;
	}
}

/* Records were lost behind @before. */
static void lose(struct classes *classes, const struct kb_tile *before)
{
	uint64_t key = before->task_id;
	struct task *task = before->has_task && key ? kb_table_find(&classes->tasks, &key) : NULL;

	if (task)
		doubt(task);
}

static int add(struct classes *classes, const struct kb_walk *walk)
{
	const struct kb_event *event = &walk->event;
	struct kb_tile tiles[KB_TILES_MOST], before = { 0 }, now;
	int nr, ret = 0;

	classes->ticks = event->timestamp;
	kb_tiles_now(classes->tiles, event->core, &before);
	nr = kb_tiles_feed(classes->tiles, walk, tiles);
	for (int i = 0; i < nr && !ret; i++)
		ret = add_tile(classes, &tiles[i]);
	if (walk->nr_slices && walk->slices[walk->nr_slices - 1].kind == KB_SLICE_LOST)
		lose(classes, &before);
	if (nr < 0 || ret || !kb_tiles_now(classes->tiles, event->core, &now))
		return nr < 0 ? nr : ret;
	classes->table.seen[event->core] = true;
	if (kb_stops_offline(event, classes->stop_series))
		classes->cpus[event->core].offline = true;
	if (event->type == KB_EVENT_TASK_SWITCH)
		return add_switch(classes, event, &before, now.end);
	return event->type == KB_EVENT_CUSTOM_COUNTER ? add_record(classes, event, now.end) : 0;
}

/* ---- the walk ---- */

static int finish_lives(struct classes *classes)
{
	int ret = 0;

	for (uint32_t i = 0; i < classes->tasks.nr && !ret; i++) {
		struct task *task = kb_table_row(&classes->tasks, i);

		if (task->state == GONE)
			continue;
		/* One whose CPU tells nothing more may live no longer. */
		ret = task->state != ON_CPU ? settle(classes, task, kb_trace_last(classes->trace))
					    : 0;
		ret = ret ?: end_life(classes, task);
	}
	return ret;
}

static int read_all(struct classes *classes, struct kb_error *err)
{
	const struct kb_walk *walk;
	struct kb_tile tile;
	int ret = 0;

	while (!ret && (classes->walked = kb_trace_next(classes->trace, &walk, err)) > 0)
		ret = add(classes, walk);
	while (!ret && kb_tiles_end(classes->tiles, &tile))
		ret = add_tile(classes, &tile);
	ret = ret ?: finish_lives(classes);
	return ret || classes->walked == -ENOMEM ? no_memory(err) : 0;
}

static int prepare(struct classes *classes, const struct kb_classes_options *how,
		   struct kb_error *err)
{
	const struct kb_barman *barman = kb_trace_barman(classes->trace);
	struct kb_classes *shown = &classes->shown;
	const char *filter = kb_barman_fact(barman, "filter");

	shown->has_calls = kb_has_source(barman, "syscalls");
	shown->has_faults = kb_has_source(barman, "faults");
	shown->has_interrupts = kb_has_source(barman, "irq") && kb_has_source(barman, "softirq");
	shown->has_wakeups = kb_has_source(barman, "wake");
	shown->has_objects = classes->has_objects = kb_has_objects(barman);
	shown->only_some = filter && strcmp(filter, "none") != 0;
	classes->stop_series = kb_stops_series(kb_trace_header(classes->trace));
	classes->decider = (struct kb_decider){ take, classes };
	classes->cpus = calloc((size_t)kb_trace_header(classes->trace)->max_cores + 1,
			       sizeof(*classes->cpus));
	if (!classes->cpus)
		return no_memory(err);
	for (uint32_t core = 0; core < kb_trace_header(classes->trace)->max_cores; core++)
		classes->cpus[core].done = INT64_MIN;
	return kb_class_table_init(&classes->table, classes->trace, how, err) ?:
	       kb_trace_rewind(classes->trace, err) ?:
	       kb_gaps_read(&classes->gaps, classes->trace, err) ?:
	       kb_tiles_create(&classes->tiles, classes->trace, err);
}

static int finish(struct classes *classes, struct kb_error *err)
{
	struct kb_classes *shown = &classes->shown;

	if (kb_class_table_finish(&classes->table, shown))
		return no_memory(err);
	shown->duration_ns = kb_trace_duration(classes->trace);
	shown->damaged = kb_trace_is_damaged(classes->trace, classes->walked, err);
	return 0;
}

static void destroy(struct classes *classes)
{
	for (uint32_t i = 0; i < classes->tasks.nr; i++)
		kb_undecided_release(&((struct task *)kb_table_row(&classes->tasks, i))->undecided);
	kb_table_release(&classes->tasks);
	kb_class_table_release(&classes->table);
	kb_tiles_destroy(classes->tiles);
	kb_gaps_release(&classes->gaps);
	free(classes->cpus);
	free(classes);
}

int kb_classes_create(const struct kb_classes **out, struct kb_trace *trace,
		      const struct kb_classes_options *options, struct kb_error *err)
{
	struct classes *classes = calloc(1, sizeof(*classes));
	struct kb_classes_options how;
	int ret;

	if (!classes)
		return no_memory(err);
	classes->trace = trace;
	kb_table_init(&classes->tasks, sizeof(struct task), 1);
	ret = KB_OPTIONS(&how, options, err) ?: prepare(classes, &how, err) ?:
	      read_all(classes, err) ?: finish(classes, err);
	if (ret) {
		destroy(classes);
		return ret;
	}
	*out = &classes->shown;
	return classes->shown.damaged;
}

void kb_classes_destroy(const struct kb_classes *classes)
{
	if (classes)
		destroy((struct classes *)classes);	/* NOLINT: it is its first member */
}

const char *kb_class_name(unsigned int kind)
{
	static const char *const names[KB_CLASSES] = {
		[KB_CLASS_USER] = "user",	[KB_CLASS_CALL] = "call",
		[KB_CLASS_FAULT] = "fault",	[KB_CLASS_IRQ] = "irq",
		[KB_CLASS_SOFTIRQ] = "softirq", [KB_CLASS_KERNEL] = "kernel",
		[KB_CLASS_RUNNING] = "running", [KB_CLASS_RUNNABLE] = "runnable",
		[KB_CLASS_WAIT] = "wait",	[KB_CLASS_IDLE] = "idle",
		[KB_CLASS_OFFLINE] = "offline", [KB_CLASS_UNKNOWN] = "unknown",
	};

	return kind < KB_CLASSES ? names[kind] : "unknown";
}
