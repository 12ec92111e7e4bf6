// SPDX-License-Identifier: MIT
/*
 * The analyses of reports find what there is: tiles the interrupts, wakeups the waits. Here what is
 * longer than a limit becomes a moment, with its reason in words. A moment that is a wait has to stay
 * until it is known whether records are missing in it.
 *
 * A watching program must not find itself. Its own threads' waits are none, and of the wait of
 * another task its time on that CPU is left out.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/latency/wakeups.h"
#include "analysis/time/ended.h"
#include "analysis/time/origin.h"
#include "analysis/trace/parts.h"
#include "base/array.h"
#include "base/bisect.h"
#include "base/options.h"
#include "base/text/pattern.h"
#include "format/call_names.h"
#include "trigger/detector.h"
#include "trigger/rates.h"
#include "trigger/reason.h"
#include "trigger/triggers.h"

#define FOUND_MAX	4096U	/* moments that wait; more in one round are counted */
#define OWN_MAX		64U	/* the last times of own threads on a CPU that are remembered */
#define TOLD_MAX	256U	/* times off a CPU that fired before they were over */
#define GAPS_MAX	1024U
#define COUNTERS_MAX	64U	/* of a core: a bit each */

struct found {
	struct kb_fired fired;
	bool is_wait;			/* in which no record may be missing: */
	int64_t since;			/* ns */
};

/* What an expression about a counter knows. */
struct counting {
	uint64_t *counters;		/* by core: a bit for each counter of its samples */
	bool *series;			/* by row of the table */
	struct level {
		uint64_t value;
		bool known;
	} *levels;			/* by core and series: of series of levels */
	bool known;
	struct kb_rate rate;
};

struct told {
	const struct kb_trigger *trigger;
	uint32_t task_id;
	int64_t since;
};

struct own {
	uint32_t core;
	int64_t start, end;
};

struct kb_detector {
	const struct kb_triggers *triggers;
	struct kb_trace *trace;
	const struct kb_header *header;
	const struct kb_tasks *tasks;
	struct kb_detector_options how;
	const struct kb_detector_names *names;	/* NULL: those of the trace */

	struct kb_gaps gaps;
	struct kb_wanted wanted;
	struct kb_tiles *tiles;
	struct kb_wakeups *wakeups;
	const struct kb_walk *walk;	/* the record that is fed */
	struct counting *countings;	/* of each expression */
	bool any_counter, any_disk;
	uint64_t shortest_off;		/* ns: the smallest limit of times off a CPU; 0: there is none */
	const char *machine;		/* of which system calls have their numbers; NULL: not known */
	const struct kb_names *disks;	/* NULL: no expression is about them */

	struct own own[OWN_MAX];
	uint32_t nr_own;		/* so far */
	struct told told[TOLD_MAX];
	uint32_t nr_told;		/* so far */

	struct found *found;
	uint32_t first, nr_found, room;	/* those from `first` on wait */
	uint64_t more;
	int64_t now;			/* ns: as kb_detector_time() was told */
};

/* ---- names ---- */

static const char *task_name(const struct kb_detector *detector, uint32_t task_id, uint64_t ticks,
			     char buffer[KB_TASK_NAME_BUFFER])
{
	return detector->names
		       ? detector->names->task(detector->names->context, task_id, ticks, buffer)
		       : kb_tasks_name(detector->tasks, task_id, ticks, buffer);
}

static const char *series_name(const struct kb_detector *detector, uint32_t series)
{
	const char *name = detector->names
				   ? detector->names->series(detector->names->context, series)
				   : detector->header->series[series].name;

	return name ? name : "";
}

static bool is_own(const struct kb_detector *detector, uint32_t task_id)
{
	return detector->how.is_own && detector->how.is_own(detector->how.context, task_id);
}

static bool is_named(const struct kb_detector *detector, const struct kb_trigger *trigger,
		     uint32_t task_id, uint64_t ticks)
{
	char buffer[KB_TASK_NAME_BUFFER];
	const char *name;

	if (!trigger->name)
		return true;
	name = task_name(detector, task_id, ticks, buffer);
	return kb_pattern_matches(trigger->name, name, strlen(name));
}

/* ---- moments ---- */

/* A new moment at the record that is fed. Returns NULL if there is no room. */
static struct found *add(struct kb_detector *detector, const struct kb_trigger *trigger)
{
	const struct kb_walk *walk = detector->walk;
	struct found *found;

	if (detector->nr_found == FOUND_MAX ||
	    !KB_ARRAY_ROOM(detector->found, detector->room, (size_t)detector->nr_found + 1)) {
		detector->more++;
		return NULL;
	}
	found = &detector->found[detector->nr_found++];
	*found = (struct found){ .fired.trigger = trigger };
	if (walk) {
		found->fired.ns = walk->ns;
		found->fired.ticks = walk->event.timestamp;
		found->fired.has_record = true;
		found->fired.core = walk->event.core;
		found->fired.task_id = walk->event.task_id;
	}
	return found;
}

/* How long own threads were on @core in that time. */
static uint64_t own_time(const struct kb_detector *detector, uint32_t core, int64_t since,
			 int64_t until)
{
	uint64_t ns = 0;

	for (uint32_t i = 0; i < OWN_MAX; i++) {	/* those not used are empty */
		int64_t start = detector->own[i].start > since ? detector->own[i].start : since;
		int64_t end = detector->own[i].end < until ? detector->own[i].end : until;

		if (detector->own[i].core == core && end > start)
			ns += (uint64_t)end - (uint64_t)start;
	}
	return ns;
}

static int take_wait(void *context, const struct kb_late *late)
{
	const struct kb_latency_wait *wait = &late->wait;
	struct kb_detector *detector = context;
	int64_t until = (int64_t)((uint64_t)wait->since + wait->ns);
	uint64_t own = own_time(detector, wait->core, wait->since, until), ns = wait->ns;
	char buffer[KB_TASK_NAME_BUFFER], waker[KB_ORIGIN_NAME];
	struct found *found;

	ns -= own < ns ? own : ns;
	for (uint32_t i = 0; i < kb_triggers_nr(detector->triggers); i++) {
		const struct kb_trigger *trigger = kb_triggers_get(detector->triggers, i);

		if ((trigger->kind != KB_TRIGGER_LATENCY &&
		     (trigger->kind != KB_TRIGGER_WAKEUP || wait->preempted)) ||
		    ns <= trigger->limit ||
		    !is_named(detector, trigger, wait->task_id, wait->ticks) ||
		    is_own(detector, wait->task_id))
			continue;
		found = add(detector, trigger);
		if (!found)
			continue;
		found->is_wait = true;
		found->since = wait->since;
		found->fired.task_id = wait->task_id;
		found->fired.measured = ns;
		if (wait->waker.kind == KB_TILE_TASK)
			snprintf(waker, sizeof(waker), "%s",
				 task_name(detector, wait->waker.id, wait->ticks, buffer));
		else
			kb_origin_name(detector->trace, &wait->waker, wait->ticks, waker,
				       sizeof(waker));
		kb_reason_wait(&found->fired, wait,
			       task_name(detector, wait->task_id, wait->ticks, buffer), waker);
	}
	return 0;
}

/* ---- times off a CPU ---- */

static bool was_told(const struct kb_detector *detector, const struct kb_trigger *trigger,
		     const struct kb_off *off)
{
	for (uint32_t i = 0; i < TOLD_MAX; i++)
		if (detector->told[i].task_id == off->task_id &&
		    detector->told[i].since == off->since && detector->told[i].trigger == trigger)
			return true;
	return false;
}

/* The system call in which the task waits; NULL: none, or it has no name. */
static const char *call_of(const struct kb_detector *detector, const struct kb_off *off)
{
	return kb_object_call_name(detector->machine, &off->object);
}

/* What says more than the call. */
static bool is_thing(uint8_t object)
{
	return object >= KB_OBJECT_FILE && object != KB_OBJECT_ANON && object != KB_OBJECT_FUTEX;
}

/* Whether it waits in the call, or for the object, that the expression names. */
static bool waits_for(const struct kb_detector *detector, const struct kb_trigger *trigger,
		      const struct kb_off *off)
{
	const char *call = call_of(detector, off), *object = kb_object_name(off->object.kind);

	return (call && kb_pattern_matches(trigger->name, call, strlen(call))) ||
	       (object && kb_pattern_matches(trigger->name, object, strlen(object)));
}

/* Whether the expression is about such a time. */
static bool is_about(const struct kb_detector *detector, const struct kb_trigger *trigger,
		     const struct kb_off *off, uint64_t ticks)
{
	return trigger->kind == KB_TRIGGER_WAIT ? waits_for(detector, trigger, off) :
	       trigger->kind == KB_TRIGGER_OFF_CPU && is_named(detector, trigger, off->task_id, ticks);
}

/* It lasts up to @until so far, or @is_over. */
static void check_off(struct kb_detector *detector, const struct kb_off *off, int64_t until,
		      bool is_over)
{
	uint64_t ns = (uint64_t)until - (uint64_t)off->since;
	uint64_t ticks = is_over ? detector->walk->event.timestamp : UINT64_MAX;
	char buffer[KB_TASK_NAME_BUFFER];
	struct found *found;

	if (ns <= detector->shortest_off || !detector->shortest_off || !off->sure ||
	    is_own(detector, off->task_id))
		return;
	for (uint32_t i = 0; i < kb_triggers_nr(detector->triggers); i++) {
		const struct kb_trigger *trigger = kb_triggers_get(detector->triggers, i);

		if (ns <= trigger->limit || !is_about(detector, trigger, off, ticks) ||
		    was_told(detector, trigger, off))
			continue;
		if (!is_over)
			detector->told[detector->nr_told++ % TOLD_MAX] =
				(struct told){ trigger, off->task_id, off->since };
		found = add(detector, trigger);
		if (!found)
			continue;
		found->is_wait = true;
		found->since = off->since;
		found->fired.task_id = off->task_id;
		found->fired.core = off->core;
		found->fired.measured = ns;
		if (!is_over)	/* the moment is when the limit was reached */
			found->fired.ns = (int64_t)((uint64_t)off->since + trigger->limit);
		kb_reason_off(&found->fired, off, is_over,
			      task_name(detector, off->task_id, ticks, buffer), call_of(detector, off),
			      is_thing(off->object.kind) ? kb_object_name(off->object.kind) : NULL);
	}
}

static int take_off(void *context, const struct kb_off *off)
{
	struct kb_detector *detector = context;

	check_off(detector, off, detector->walk->ns, true);
	return 0;
}

static int take_open_off(void *context, const struct kb_off *off)
{
	struct kb_detector *detector = context;

	if (detector->now > off->since)
		check_off(detector, off, detector->now, false);
	return 0;
}

int kb_detector_time(struct kb_detector *detector, int64_t ns)
{
	int ret = 0;

	detector->now = ns;
	detector->walk = NULL;
	if (detector->shortest_off)
		ret = kb_wakeups_off(detector->wakeups, take_open_off, detector);
	return ret;
}

/* ---- interrupts ---- */

static void take_tile(struct kb_detector *detector, const struct kb_tile *tile)
{
	const struct kb_origin origin = kb_origin_in(tile);
	char name[KB_ORIGIN_NAME], buffer[KB_TASK_NAME_BUFFER];
	struct found *found;

	if (!tile->ends || !kb_origin_interrupts(tile->kind))
		return;
	for (uint32_t i = 0; i < kb_triggers_nr(detector->triggers); i++) {
		const struct kb_trigger *trigger = kb_triggers_get(detector->triggers, i);

		if (trigger->kind != KB_TRIGGER_IRQ || tile->own <= trigger->limit)
			continue;
		kb_origin_name(detector->trace, &origin, detector->walk->event.timestamp, name,
			       sizeof(name));
		if (!kb_pattern_matches(trigger->name, name, strlen(name)))
			continue;
		found = add(detector, trigger);
		if (!found)
			continue;
		found->fired.task_id = tile->has_task ? tile->task_id : 0;
		found->fired.measured = tile->own;
		kb_reason_irq(&found->fired, tile, name,
			      tile->has_task ? task_name(detector, tile->task_id,
							 detector->walk->event.timestamp, buffer)
					     : NULL);
	}
}

/* ---- what took time ---- */

static void take_ended(struct kb_detector *detector, enum kb_trigger_kind kind, const char *name)
{
	const struct kb_event *event = &detector->walk->event;
	uint64_t ns = kb_ended_ns(kb_trace_barman(detector->trace), event);
	uint32_t task_id = kb_ended_task(event);
	char buffer[KB_TASK_NAME_BUFFER];
	struct found *found;
	const char *task;

	if (!name || (task_id && is_own(detector, task_id)))
		return;
	for (uint32_t i = 0; i < kb_triggers_nr(detector->triggers); i++) {
		const struct kb_trigger *trigger = kb_triggers_get(detector->triggers, i);

		if (trigger->kind != kind || ns <= trigger->limit ||
		    !kb_pattern_matches(trigger->name, name, strlen(name)))
			continue;
		found = add(detector, trigger);
		if (!found)
			continue;
		found->fired.measured = ns;
		found->fired.task_id = task_id;
		task = task_name(detector, task_id, event->timestamp, buffer);
		if (kind == KB_TRIGGER_SYSCALL)
			kb_reason_syscall(&found->fired, name, task);
		else
			kb_reason_block(&found->fired, event->custom_counter.cpu & KB_BLOCK_OPERATION, name,
					task_id ? task : NULL);
	}
}

static void take_value_of(struct kb_detector *detector)
{
	const struct kb_event *event = &detector->walk->event;
	char text[KB_DISK_TEXT];

	if (event->custom_counter.what == KB_WHAT_SYSCALL)
		take_ended(detector, KB_TRIGGER_SYSCALL,
			   kb_call_name(detector->machine, event->custom_counter.cpu & KB_SYSCALL_COMPAT,
					event->custom_counter.id));
	else if (event->custom_counter.what == KB_WHAT_BLOCK && detector->disks)
		take_ended(detector, KB_TRIGGER_BLOCK,
			   kb_disk_name(detector->disks,
					(uint32_t)event->custom_counter.arguments[KB_BLOCK_DEVICE], text));
}

/* ---- counters ---- */

/* Whether @name, perhaps with modifiers as in "cycles:u", is what the expression names. */
static bool is_counter(const struct kb_trigger *trigger, struct kb_text name)
{
	const char *colon = memchr(name.data, ':', name.length);

	return kb_pattern_matches(trigger->name, name.data, name.length) ||
	       (colon && kb_pattern_matches(trigger->name, name.data, (size_t)(colon - name.data)));
}

static void resolve_counters(struct kb_detector *detector, const struct kb_names *names,
			     const struct kb_trigger *trigger, struct counting *counting)
{
	for (uint32_t core = 0; core < detector->header->max_cores; core++) {
		uint32_t nr = kb_names_of_core(names, core);

		for (uint32_t i = 0; i < nr && i < COUNTERS_MAX; i++)
			if (is_counter(trigger, kb_names_counter(names, kb_names_counter_id(names, core, i)))) {
				counting->counters[core] |= UINT64_C(1) << i;
				counting->known = true;
			}
	}
}

static int allocate_counting(struct kb_detector *detector, struct counting *counting)
{
	size_t cores = (size_t)detector->header->max_cores + 1,
	       series = (size_t)detector->header->nr_series + 1;

	if (counting->counters)
		return 0;
	counting->counters = calloc(cores, sizeof(*counting->counters));
	counting->series = calloc(series, sizeof(*counting->series));
	counting->levels = calloc(cores * series, sizeof(*counting->levels));
	return counting->counters && counting->series && counting->levels ? 0 : -ENOMEM;
}

int kb_detector_resolve(struct kb_detector *detector)
{
	const struct kb_names *names =
		detector->any_counter ? kb_trace_names(detector->trace, NULL) : NULL;

	if (detector->any_counter && !names)
		return -ENOMEM;
	for (uint32_t i = 0; i < kb_triggers_nr(detector->triggers) && names; i++) {
		const struct kb_trigger *trigger = kb_triggers_get(detector->triggers, i);
		struct counting *counting = &detector->countings[i];

		if (trigger->kind != KB_TRIGGER_COUNTER)
			continue;
		if (allocate_counting(detector, counting))
			return -ENOMEM;
		resolve_counters(detector, names, trigger, counting);
		for (uint32_t k = 0; k < detector->header->nr_series; k++) {
			const char *name = series_name(detector, k);

			if (*name && is_counter(trigger, kb_text(name)))
				counting->series[k] = counting->known = true;
		}
	}
	return 0;
}

void kb_detector_same_counters(struct kb_detector *detector, uint32_t core, uint32_t as)
{
	for (uint32_t i = 0; i < kb_triggers_nr(detector->triggers); i++)
		if (detector->countings[i].counters)
			detector->countings[i].counters[core] = detector->countings[i].counters[as];
}

bool kb_detector_knows(const struct kb_detector *detector, uint32_t i)
{
	return kb_triggers_get(detector->triggers, i)->kind != KB_TRIGGER_COUNTER ||
	       detector->countings[i].known;
}

static void add_rate(struct kb_detector *detector, const struct kb_trigger *trigger,
		     struct counting *counting, double value)
{
	const double limit = trigger->scale * (double)KB_RATE_NS / 1e9;
	struct found *found;
	double sum;

	if (!trigger->is_rate ||
	    !kb_rate_add(&counting->rate, detector->walk->ns, value, limit, &sum))
		return;
	found = add(detector, trigger);
	if (!found)
		return;
	sum *= 1e9 / (double)KB_RATE_NS;
	found->fired.measured = sum < 1e18 ? (uint64_t)sum : UINT64_MAX;
	kb_reason_rate(&found->fired, trigger->name, sum);
}

static void add_value(struct kb_detector *detector, const struct kb_trigger *trigger, double value,
		      const char *name)
{
	struct found *found = add(detector, trigger);

	if (!found)
		return;
	found->fired.measured = value < 0 ? 0 : value < 1e18 ? (uint64_t)value : UINT64_MAX;
	kb_reason_value(&found->fired, name, value);
}

/* The value of a series: a level, or an amount. */
static void take_series(struct kb_detector *detector, uint32_t i, uint32_t series, uint64_t bits)
{
	const struct kb_trigger *trigger = kb_triggers_get(detector->triggers, i);
	const struct kb_series *row = &detector->header->series[series];
	struct counting *counting = &detector->countings[i];
	uint32_t core = detector->walk->event.core;
	double factor = row->multiplier, value;
	struct level *level;
	bool was_above;

	if (core > detector->header->max_cores)
		core = detector->header->max_cores;	/* of none */
	level = &counting->levels[(size_t)core * detector->header->nr_series + series];
	if (!(factor > 0))
		factor = 1;
	value = (double)(int64_t)bits * factor;
	if (trigger->is_rate && row->series_class == KB_SERIES_ABSOLUTE) {
		if (level->known)
			add_rate(detector, trigger, counting,
				 (double)(int64_t)(bits - level->value) * factor);
	} else if (trigger->is_rate) {
		add_rate(detector, trigger, counting, value);
	} else {
		/* a level above the limit fires once, until it was below */
		was_above = row->series_class == KB_SERIES_ABSOLUTE && level->known &&
			    (double)(int64_t)level->value * factor > trigger->scale;
		if (value > trigger->scale && !was_above)
			add_value(detector, trigger, value, series_name(detector, series));
	}
	level->value = bits;
	level->known = true;
}

static void take_sample(struct kb_detector *detector, uint32_t i)
{
	const struct kb_trigger *trigger = kb_triggers_get(detector->triggers, i);
	const struct kb_event *event = &detector->walk->event;
	struct counting *counting = &detector->countings[i];
	uint64_t counters = counting->counters[event->core];

	for (uint32_t k = 0; k < event->sample.nr_counters && k < COUNTERS_MAX && counters; k++)
		if (counters >> k & 1 && event->sample.counters[k] != KB_COUNTER_INVALID)
			add_rate(detector, trigger, counting, (double)event->sample.counters[k]);
	for (uint32_t k = 0; k < event->sample.nr_custom; k++)
		if (counting->series[event->sample.custom[k].id])
			take_series(detector, i, event->sample.custom[k].id,
				    event->sample.custom[k].value);
}

static void take_counters(struct kb_detector *detector)
{
	const struct kb_event *event = &detector->walk->event;

	for (uint32_t i = 0; i < kb_triggers_nr(detector->triggers); i++) {
		if (!detector->countings[i].known)
			continue;
		if (event->type == KB_EVENT_SAMPLE)
			take_sample(detector, i);
		else if (event->type == KB_EVENT_CUSTOM_COUNTER &&
			 detector->countings[i].series[event->custom_counter.counter])
			take_series(detector, i, event->custom_counter.counter,
				    event->custom_counter.value);
	}
}

/* ---- marks ---- */

static void take_mark(struct kb_detector *detector)
{
	const struct kb_event *event = &detector->walk->event;
	char buffer[KB_TASK_NAME_BUFFER];
	struct found *found;

	if (event->annotation.type != KB_ANNOTATION_STRING &&
	    event->annotation.type != KB_ANNOTATION_BOOKMARK)
		return;
	for (uint32_t i = 0; i < kb_triggers_nr(detector->triggers); i++) {
		const struct kb_trigger *trigger = kb_triggers_get(detector->triggers, i);

		if (trigger->kind != KB_TRIGGER_MARK || !event->annotation.text_length ||
		    !kb_pattern_matches(trigger->name, event->annotation.text,
					event->annotation.text_length))
			continue;
		found = add(detector, trigger);
		if (found)
			kb_reason_mark(
				&found->fired, event,
				task_name(detector, event->task_id, event->timestamp, buffer));
	}
}

/* ---- records ---- */

/* A capture that was read for its gaps has them all. */
static bool is_in_gap(const struct kb_gaps *gaps, int64_t start, int64_t end)
{
	/* behind the last gap that begins at @start or before */
	uint32_t i = KB_BISECT(k, 0, gaps->nr, gaps->rows[k].start <= start);

	return i && end <= gaps->rows[i - 1].end;
}

/* Far more gaps than there should be are joined. */
int kb_detector_gap(struct kb_detector *detector, int64_t start, int64_t end)
{
	struct kb_gaps *gaps = &detector->gaps;

	if (end < start)
		end = start;
	if (is_in_gap(gaps, start, end))
		return 0;
	if (gaps->nr && start <= gaps->rows[gaps->nr - 1].end) {
		struct kb_gap *last = &gaps->rows[gaps->nr - 1];

		last->start = start < last->start ? start : last->start;
		last->end = end > last->end ? end : last->end;
		while (gaps->nr > 1 && gaps->rows[gaps->nr - 2].end >= gaps->rows[gaps->nr - 1].start) {
			struct kb_gap *before = &gaps->rows[gaps->nr - 2];

			last = &gaps->rows[gaps->nr - 1];
			before->start = last->start < before->start ? last->start : before->start;
			before->end = last->end > before->end ? last->end : before->end;
			gaps->nr--;
		}
		return 0;
	}
	if (gaps->nr == GAPS_MAX) {
		gaps->rows[1].start = gaps->rows[0].start;
		memmove(gaps->rows, gaps->rows + 1, (gaps->nr - 1) * sizeof(*gaps->rows));
		gaps->nr--;
	}
	if (!KB_ARRAY_ROOM(gaps->rows, gaps->room, (size_t)gaps->nr + 1))
		return -ENOMEM;
	gaps->rows[gaps->nr++] = (struct kb_gap){ start, end };
	return 0;
}

static int take_slices(struct kb_detector *detector)
{
	for (unsigned int i = 0; i < detector->walk->nr_slices; i++) {
		const struct kb_slice *slice = &detector->walk->slices[i];

		if (slice->kind == KB_SLICE_LOST &&
		    kb_detector_gap(detector, slice->start, slice->end))
			return -ENOMEM;
		if (slice->kind == KB_SLICE_RUN && slice->has_task && slice->task_id &&
		    is_own(detector, slice->task_id))
			detector->own[detector->nr_own++ % OWN_MAX] =
				(struct own){ slice->core, slice->start, slice->end };
	}
	return 0;
}

int kb_detector_feed(struct kb_detector *detector, const struct kb_walk *walk)
{
	struct kb_tile tiles[KB_TILES_MOST];
	int nr;

	if (walk->event.type == KB_EVENT_UNKNOWN)
		return 0;
	detector->walk = walk;
	if (take_slices(detector))
		return -ENOMEM;
	nr = kb_tiles_feed(detector->tiles, walk, tiles);
	for (int i = 0; i < nr; i++)
		take_tile(detector, &tiles[i]);
	if (nr < 0 || kb_wakeups_feed(detector->wakeups, walk))
		return -ENOMEM;
	if (detector->any_counter)
		take_counters(detector);
	if (walk->event.type == KB_EVENT_ANNOTATION)
		take_mark(detector);
	if (walk->event.type == KB_EVENT_CUSTOM_COUNTER)
		take_value_of(detector);
	return 0;
}

/* Takes away the moment @i. */
static void take_away(struct kb_detector *detector, uint32_t i)
{
	memmove(&detector->found[detector->first + 1], &detector->found[detector->first],
		(i - detector->first) * sizeof(*detector->found));
	detector->first++;
	if (detector->first == detector->nr_found)
		detector->first = detector->nr_found = 0;
}

bool kb_detector_fired(struct kb_detector *detector, int64_t until, struct kb_fired *fired)
{
	uint32_t i = detector->first;

	while (i < detector->nr_found) {
		const struct found *found = &detector->found[i];
		bool cut;

		if (found->is_wait && found->fired.ns > until) {
			i++;
			continue;
		}
		cut = found->is_wait &&
		      kb_gaps_overlap(&detector->gaps, found->since, found->fired.ns);
		*fired = found->fired;
		take_away(detector, i);
		if (!cut)
			return true;
		i = i + 1 < detector->nr_found ? i + 1 : detector->nr_found;
	}
	return false;
}

uint64_t kb_detector_more(const struct kb_detector *detector)
{
	return detector->more;
}

/* ---- create and destroy ---- */

static void look_at_triggers(struct kb_detector *detector)
{
	for (uint32_t i = 0; i < kb_triggers_nr(detector->triggers); i++) {
		const struct kb_trigger *trigger = kb_triggers_get(detector->triggers, i);

		detector->any_counter |= trigger->kind == KB_TRIGGER_COUNTER;
		detector->any_disk |= trigger->kind == KB_TRIGGER_BLOCK;
		if ((trigger->kind == KB_TRIGGER_OFF_CPU || trigger->kind == KB_TRIGGER_WAIT) &&
		    (!detector->shortest_off || trigger->limit < detector->shortest_off))
			detector->shortest_off = trigger->limit;
	}
}

static int create_parts(struct kb_detector *detector, struct kb_error *err)
{
	struct kb_wakeups_parts parts = {
		.wanted = &detector->wanted,
		.gaps = &detector->gaps,
		.take = take_wait,
		.take_off = take_off,
		.context = detector,
		.only_some = detector->how.only_some,
	};
	int ret = kb_wanted_init(&detector->wanted, detector->trace, NULL, err) ?:
		  kb_gaps_read(&detector->gaps, detector->trace, err);

	if (ret)
		return ret;
	if (!kb_trace_timeline(detector->trace, err))
		return -ENOMEM;
	detector->disks = detector->any_disk ? kb_trace_names(detector->trace, err) : NULL;
	if (detector->any_disk && !detector->disks)
		return -ENOMEM;
	ret = kb_tiles_create(&detector->tiles, detector->trace, err);
	parts.tiles = detector->tiles;
	if (ret)
		return ret;
	if (kb_wakeups_create(&detector->wakeups, &parts) || kb_detector_resolve(detector))
		return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
	return 0;
}

int kb_detector_create(struct kb_detector **out, const struct kb_triggers *triggers,
		       struct kb_trace *trace, const struct kb_detector_options *options,
		       struct kb_error *err)
{
	struct kb_detector *detector = calloc(1, sizeof(*detector));
	int ret;

	*out = NULL;
	if (!detector)
		return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
	detector->triggers = triggers;
	detector->trace = trace;
	detector->header = kb_trace_header(trace);
	detector->machine = kb_barman_fact(kb_trace_barman(trace), "machine");
	detector->tasks = kb_trace_tasks(trace, err);
	detector->countings =
		calloc((size_t)kb_triggers_nr(triggers) + 1, sizeof(*detector->countings));
	look_at_triggers(detector);
	ret = !detector->tasks || !detector->countings ?
	      kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory") :
	      KB_OPTIONS(&detector->how, options, err) ?: create_parts(detector, err);
	if (ret)
		kb_detector_destroy(detector);
	else
		*out = detector;
	return ret;
}

void kb_detector_destroy(struct kb_detector *detector)
{
	if (!detector)
		return;
	for (uint32_t i = 0; detector->countings && i < kb_triggers_nr(detector->triggers); i++) {
		free(detector->countings[i].counters);
		free(detector->countings[i].series);
		free(detector->countings[i].levels);
	}
	free(detector->countings);
	kb_wakeups_destroy(detector->wakeups);
	kb_tiles_destroy(detector->tiles);
	kb_gaps_release(&detector->gaps);
	free(detector->found);
	free(detector);
}

void kb_detector_use_names(struct kb_detector *detector, const struct kb_detector_names *names)
{
	detector->names = names;
}
