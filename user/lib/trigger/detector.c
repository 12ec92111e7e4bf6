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

#include "analysis/origin.h"
#include "analysis/trace_parts.h"
#include "analysis/wakeups.h"
#include "base/array.h"
#include "base/options.h"
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
	bool any_counter;
	uint64_t shortest_off;		/* ns: the smallest limit of times off a CPU; 0: there is none */

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

static const char *task_name(const struct kb_detector *d, uint32_t task_id, uint64_t ticks,
			     char buffer[KB_TASK_NAME_BUFFER])
{
	return d->names ? d->names->task(d->names->context, task_id, ticks, buffer)
			: kb_tasks_name(d->tasks, task_id, ticks, buffer);
}

static const char *series_name(const struct kb_detector *d, uint32_t series)
{
	const char *name = d->names ? d->names->series(d->names->context, series)
				    : d->header->series[series].name;

	return name ? name : "";
}

static bool is_own(const struct kb_detector *d, uint32_t task_id)
{
	return d->how.is_own && d->how.is_own(d->how.context, task_id);
}

static bool is_named(const struct kb_detector *d, const struct kb_trigger *trigger,
		     uint32_t task_id, uint64_t ticks)
{
	char buffer[KB_TASK_NAME_BUFFER];
	const char *name;

	if (!trigger->name)
		return true;
	name = task_name(d, task_id, ticks, buffer);
	return kb_trigger_matches(trigger->name, name, strlen(name));
}

/* ---- moments ---- */

/* A new moment at the record that is fed. Returns NULL if there is no room. */
static struct found *add(struct kb_detector *d, const struct kb_trigger *trigger)
{
	const struct kb_walk *walk = d->walk;
	struct found *found;

	if (d->nr_found == FOUND_MAX || !KB_ARRAY_ROOM(d->found, d->room, (size_t)d->nr_found + 1)) {
		d->more++;
		return NULL;
	}
	found = &d->found[d->nr_found++];
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
static uint64_t own_time(const struct kb_detector *d, uint32_t core, int64_t since, int64_t until)
{
	uint64_t ns = 0;

	for (uint32_t i = 0; i < OWN_MAX; i++) {	/* those not used are empty */
		int64_t start = d->own[i].start > since ? d->own[i].start : since;
		int64_t end = d->own[i].end < until ? d->own[i].end : until;

		if (d->own[i].core == core && end > start)
			ns += (uint64_t)end - (uint64_t)start;
	}
	return ns;
}

static int take_wait(void *context, const struct kb_late *late)
{
	const struct kb_latency_wait *wait = &late->wait;
	struct kb_detector *d = context;
	int64_t until = (int64_t)((uint64_t)wait->since + wait->ns);
	uint64_t own = own_time(d, wait->core, wait->since, until), ns = wait->ns;
	char buffer[KB_TASK_NAME_BUFFER], waker[KB_ORIGIN_NAME];
	struct found *found;

	ns -= own < ns ? own : ns;
	for (uint32_t i = 0; i < kb_triggers_nr(d->triggers); i++) {
		const struct kb_trigger *trigger = kb_triggers_get(d->triggers, i);

		if ((trigger->kind != KB_TRIGGER_LATENCY &&
		     (trigger->kind != KB_TRIGGER_WAKEUP || wait->preempted)) ||
		    ns <= trigger->limit || !is_named(d, trigger, wait->task_id, wait->ticks) ||
		    is_own(d, wait->task_id))
			continue;
		found = add(d, trigger);
		if (!found)
			continue;
		found->is_wait = true;
		found->since = wait->since;
		found->fired.task_id = wait->task_id;
		found->fired.measured = ns;
		if (wait->waker.kind == KB_TILE_TASK)
			snprintf(waker, sizeof(waker), "%s",
				 task_name(d, wait->waker.id, wait->ticks, buffer));
		else
			kb_origin_name(d->trace, &wait->waker, wait->ticks, waker, sizeof(waker));
		kb_reason_wait(&found->fired, wait,
			       task_name(d, wait->task_id, wait->ticks, buffer), waker);
	}
	return 0;
}

/* ---- times off a CPU ---- */

static bool was_told(const struct kb_detector *d, const struct kb_trigger *trigger,
		     const struct kb_off *off)
{
	for (uint32_t i = 0; i < TOLD_MAX; i++)
		if (d->told[i].task_id == off->task_id && d->told[i].since == off->since &&
		    d->told[i].trigger == trigger)
			return true;
	return false;
}

/* It lasts up to @until so far, or @is_over. */
static void check_off(struct kb_detector *d, const struct kb_off *off, int64_t until, bool is_over)
{
	uint64_t ns = (uint64_t)until - (uint64_t)off->since;
	uint64_t ticks = is_over ? d->walk->event.timestamp : UINT64_MAX;
	char buffer[KB_TASK_NAME_BUFFER];
	struct found *found;

	if (ns <= d->shortest_off || !d->shortest_off || !off->sure || is_own(d, off->task_id))
		return;
	for (uint32_t i = 0; i < kb_triggers_nr(d->triggers); i++) {
		const struct kb_trigger *trigger = kb_triggers_get(d->triggers, i);

		if (trigger->kind != KB_TRIGGER_OFF_CPU || ns <= trigger->limit ||
		    !is_named(d, trigger, off->task_id, ticks) || was_told(d, trigger, off))
			continue;
		if (!is_over)
			d->told[d->nr_told++ % TOLD_MAX] =
				(struct told){ trigger, off->task_id, off->since };
		found = add(d, trigger);
		if (!found)
			continue;
		found->is_wait = true;
		found->since = off->since;
		found->fired.task_id = off->task_id;
		found->fired.core = off->core;
		found->fired.measured = ns;
		if (!is_over)	/* the moment is when the limit was reached */
			found->fired.ns = (int64_t)((uint64_t)off->since + trigger->limit);
		kb_reason_off(&found->fired, off, is_over, task_name(d, off->task_id, ticks, buffer));
	}
}

static int take_off(void *context, const struct kb_off *off)
{
	struct kb_detector *d = context;

	check_off(d, off, d->walk->ns, true);
	return 0;
}

static int take_open_off(void *context, const struct kb_off *off)
{
	struct kb_detector *d = context;

	if (d->now > off->since)
		check_off(d, off, d->now, false);
	return 0;
}

int kb_detector_time(struct kb_detector *d, int64_t ns)
{
	int ret = 0;

	d->now = ns;
	d->walk = NULL;
	if (d->shortest_off)
		ret = kb_wakeups_off(d->wakeups, take_open_off, d);
	return ret;
}

/* ---- interrupts ---- */

static void take_tile(struct kb_detector *d, const struct kb_tile *tile)
{
	const struct kb_origin origin = kb_origin_in(tile);
	char name[KB_ORIGIN_NAME], buffer[KB_TASK_NAME_BUFFER];
	struct found *found;

	if (!tile->ends || !kb_origin_interrupts(tile->kind))
		return;
	for (uint32_t i = 0; i < kb_triggers_nr(d->triggers); i++) {
		const struct kb_trigger *trigger = kb_triggers_get(d->triggers, i);

		if (trigger->kind != KB_TRIGGER_IRQ || tile->own <= trigger->limit)
			continue;
		kb_origin_name(d->trace, &origin, d->walk->event.timestamp, name, sizeof(name));
		if (!kb_trigger_matches(trigger->name, name, strlen(name)))
			continue;
		found = add(d, trigger);
		if (!found)
			continue;
		found->fired.task_id = tile->has_task ? tile->task_id : 0;
		found->fired.measured = tile->own;
		kb_reason_irq(&found->fired, tile, name,
			      tile->has_task ? task_name(d, tile->task_id, d->walk->event.timestamp,
							 buffer) : NULL);
	}
}

/* ---- counters ---- */

/* Whether @name, perhaps with modifiers as in "cycles:u", is what the expression names. */
static bool is_counter(const struct kb_trigger *trigger, struct kb_text name)
{
	const char *colon = memchr(name.data, ':', name.length);

	return kb_trigger_matches(trigger->name, name.data, name.length) ||
	       (colon && kb_trigger_matches(trigger->name, name.data, (size_t)(colon - name.data)));
}

static void resolve_counters(struct kb_detector *d, const struct kb_names *names,
			     const struct kb_trigger *trigger, struct counting *counting)
{
	for (uint32_t core = 0; core < d->header->max_cores; core++) {
		uint32_t nr = kb_names_of_core(names, core);

		for (uint32_t i = 0; i < nr && i < COUNTERS_MAX; i++)
			if (is_counter(trigger, kb_names_counter(names, kb_names_counter_id(names, core, i)))) {
				counting->counters[core] |= UINT64_C(1) << i;
				counting->known = true;
			}
	}
}

static int allocate_counting(struct kb_detector *d, struct counting *counting)
{
	size_t cores = (size_t)d->header->max_cores + 1, series = (size_t)d->header->nr_series + 1;

	if (counting->counters)
		return 0;
	counting->counters = calloc(cores, sizeof(*counting->counters));
	counting->series = calloc(series, sizeof(*counting->series));
	counting->levels = calloc(cores * series, sizeof(*counting->levels));
	return counting->counters && counting->series && counting->levels ? 0 : -ENOMEM;
}

int kb_detector_resolve(struct kb_detector *d)
{
	const struct kb_names *names = d->any_counter ? kb_trace_names(d->trace, NULL) : NULL;

	if (d->any_counter && !names)
		return -ENOMEM;
	for (uint32_t i = 0; i < kb_triggers_nr(d->triggers) && names; i++) {
		const struct kb_trigger *trigger = kb_triggers_get(d->triggers, i);
		struct counting *counting = &d->countings[i];

		if (trigger->kind != KB_TRIGGER_COUNTER)
			continue;
		if (allocate_counting(d, counting))
			return -ENOMEM;
		resolve_counters(d, names, trigger, counting);
		for (uint32_t k = 0; k < d->header->nr_series; k++) {
			const char *name = series_name(d, k);

			if (*name && is_counter(trigger, kb_text(name)))
				counting->series[k] = counting->known = true;
		}
	}
	return 0;
}

void kb_detector_same_counters(struct kb_detector *d, uint32_t core, uint32_t as)
{
	for (uint32_t i = 0; i < kb_triggers_nr(d->triggers); i++)
		if (d->countings[i].counters)
			d->countings[i].counters[core] = d->countings[i].counters[as];
}

bool kb_detector_knows(const struct kb_detector *d, uint32_t i)
{
	return kb_triggers_get(d->triggers, i)->kind != KB_TRIGGER_COUNTER || d->countings[i].known;
}

static void add_rate(struct kb_detector *d, const struct kb_trigger *trigger,
		     struct counting *counting, double value)
{
	const double limit = trigger->scale * (double)KB_RATE_NS / 1e9;
	struct found *found;
	double sum;

	if (!trigger->is_rate || !kb_rate_add(&counting->rate, d->walk->ns, value, limit, &sum))
		return;
	found = add(d, trigger);
	if (!found)
		return;
	sum *= 1e9 / (double)KB_RATE_NS;
	found->fired.measured = sum < 1e18 ? (uint64_t)sum : UINT64_MAX;
	kb_reason_rate(&found->fired, trigger->name, sum);
}

static void add_value(struct kb_detector *d, const struct kb_trigger *trigger, double value,
		      const char *name)
{
	struct found *found = add(d, trigger);

	if (!found)
		return;
	found->fired.measured = value < 0 ? 0 : value < 1e18 ? (uint64_t)value : UINT64_MAX;
	kb_reason_value(&found->fired, name, value);
}

/* The value of a series: a level, or an amount. */
static void take_series(struct kb_detector *d, uint32_t i, uint32_t series, uint64_t bits)
{
	const struct kb_trigger *trigger = kb_triggers_get(d->triggers, i);
	const struct kb_series *row = &d->header->series[series];
	struct counting *counting = &d->countings[i];
	uint32_t core = d->walk->event.core;
	double factor = row->multiplier, value;
	struct level *level;
	bool was_above;

	if (core > d->header->max_cores)
		core = d->header->max_cores;	/* of none */
	level = &counting->levels[(size_t)core * d->header->nr_series + series];
	if (!(factor > 0))
		factor = 1;
	value = (double)(int64_t)bits * factor;
	if (trigger->is_rate && row->series_class == KB_SERIES_ABSOLUTE) {
		if (level->known)
			add_rate(d, trigger, counting, (double)(int64_t)(bits - level->value) * factor);
	} else if (trigger->is_rate) {
		add_rate(d, trigger, counting, value);
	} else {
		/* a level above the limit fires once, until it was below */
		was_above = row->series_class == KB_SERIES_ABSOLUTE && level->known &&
			    (double)(int64_t)level->value * factor > trigger->scale;
		if (value > trigger->scale && !was_above)
			add_value(d, trigger, value, series_name(d, series));
	}
	level->value = bits;
	level->known = true;
}

static void take_sample(struct kb_detector *d, uint32_t i)
{
	const struct kb_trigger *trigger = kb_triggers_get(d->triggers, i);
	const struct kb_event *event = &d->walk->event;
	struct counting *counting = &d->countings[i];
	uint64_t counters = counting->counters[event->core];

	for (uint32_t k = 0; k < event->sample.nr_counters && k < COUNTERS_MAX && counters; k++)
		if (counters >> k & 1 && event->sample.counters[k] != KB_COUNTER_INVALID)
			add_rate(d, trigger, counting, (double)event->sample.counters[k]);
	for (uint32_t k = 0; k < event->sample.nr_custom; k++)
		if (counting->series[event->sample.custom[k].id])
			take_series(d, i, event->sample.custom[k].id, event->sample.custom[k].value);
}

static void take_counters(struct kb_detector *d)
{
	const struct kb_event *event = &d->walk->event;

	for (uint32_t i = 0; i < kb_triggers_nr(d->triggers); i++) {
		if (!d->countings[i].known)
			continue;
		if (event->type == KB_EVENT_SAMPLE)
			take_sample(d, i);
		else if (event->type == KB_EVENT_CUSTOM_COUNTER &&
			 d->countings[i].series[event->custom_counter.counter])
			take_series(d, i, event->custom_counter.counter, event->custom_counter.value);
	}
}

/* ---- marks ---- */

static void take_mark(struct kb_detector *d)
{
	const struct kb_event *event = &d->walk->event;
	char buffer[KB_TASK_NAME_BUFFER];
	struct found *found;

	if (event->annotation.type != KB_ANNOTATION_STRING &&
	    event->annotation.type != KB_ANNOTATION_BOOKMARK)
		return;
	for (uint32_t i = 0; i < kb_triggers_nr(d->triggers); i++) {
		const struct kb_trigger *trigger = kb_triggers_get(d->triggers, i);

		if (trigger->kind != KB_TRIGGER_MARK || !event->annotation.text_length ||
		    !kb_trigger_matches(trigger->name, event->annotation.text,
					event->annotation.text_length))
			continue;
		found = add(d, trigger);
		if (found)
			kb_reason_mark(&found->fired, event,
				       task_name(d, event->task_id, event->timestamp, buffer));
	}
}

/* ---- records ---- */

/* A capture that was read for its gaps has them all. */
static bool is_in_gap(const struct kb_gaps *gaps, int64_t start, int64_t end)
{
	uint32_t low = 0, high = gaps->nr;

	/* behind the last gap that begins at @start or before */
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (gaps->rows[middle].start <= start)
			low = middle + 1;
		else
			high = middle;
	}
	return low && end <= gaps->rows[low - 1].end;
}

/* Far more gaps than there should be are joined. */
int kb_detector_gap(struct kb_detector *d, int64_t start, int64_t end)
{
	struct kb_gaps *gaps = &d->gaps;

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

static int take_slices(struct kb_detector *d)
{
	for (unsigned int i = 0; i < d->walk->nr_slices; i++) {
		const struct kb_slice *slice = &d->walk->slices[i];

		if (slice->kind == KB_SLICE_LOST && kb_detector_gap(d, slice->start, slice->end))
			return -ENOMEM;
		if (slice->kind == KB_SLICE_RUN && slice->has_task && slice->task_id &&
		    is_own(d, slice->task_id))
			d->own[d->nr_own++ % OWN_MAX] =
				(struct own){ slice->core, slice->start, slice->end };
	}
	return 0;
}

int kb_detector_feed(struct kb_detector *d, const struct kb_walk *walk)
{
	struct kb_tile tiles[KB_TILES_MOST];
	int nr;

	if (walk->event.type == KB_EVENT_UNKNOWN)
		return 0;
	d->walk = walk;
	if (take_slices(d))
		return -ENOMEM;
	nr = kb_tiles_feed(d->tiles, walk, tiles);
	for (int i = 0; i < nr; i++)
		take_tile(d, &tiles[i]);
	if (nr < 0 || kb_wakeups_feed(d->wakeups, walk))
		return -ENOMEM;
	if (d->any_counter)
		take_counters(d);
	if (walk->event.type == KB_EVENT_ANNOTATION)
		take_mark(d);
	return 0;
}

/* Takes away the moment @i. */
static void take_away(struct kb_detector *d, uint32_t i)
{
	memmove(&d->found[d->first + 1], &d->found[d->first], (i - d->first) * sizeof(*d->found));
	d->first++;
	if (d->first == d->nr_found)
		d->first = d->nr_found = 0;
}

bool kb_detector_fired(struct kb_detector *d, int64_t until, struct kb_fired *fired)
{
	uint32_t i = d->first;

	while (i < d->nr_found) {
		const struct found *found = &d->found[i];
		bool cut;

		if (found->is_wait && found->fired.ns > until) {
			i++;
			continue;
		}
		cut = found->is_wait && kb_gaps_overlap(&d->gaps, found->since, found->fired.ns);
		*fired = found->fired;
		take_away(d, i);
		if (!cut)
			return true;
		i = i + 1 < d->nr_found ? i + 1 : d->nr_found;
	}
	return false;
}

uint64_t kb_detector_more(const struct kb_detector *d)
{
	return d->more;
}

/* ---- create and destroy ---- */

static void look_at_triggers(struct kb_detector *d)
{
	for (uint32_t i = 0; i < kb_triggers_nr(d->triggers); i++) {
		const struct kb_trigger *trigger = kb_triggers_get(d->triggers, i);

		d->any_counter |= trigger->kind == KB_TRIGGER_COUNTER;
		if (trigger->kind == KB_TRIGGER_OFF_CPU &&
		    (!d->shortest_off || trigger->limit < d->shortest_off))
			d->shortest_off = trigger->limit;
	}
}

static int create_parts(struct kb_detector *d, struct kb_error *err)
{
	struct kb_wakeups_parts parts = {
		.wanted = &d->wanted,
		.gaps = &d->gaps,
		.take = take_wait,
		.take_off = take_off,
		.context = d,
		.only_some = d->how.only_some,
	};
	int ret = kb_wanted_init(&d->wanted, d->trace, NULL, err) ?:
		  kb_gaps_read(&d->gaps, d->trace, err);

	if (ret)
		return ret;
	if (!kb_trace_timeline(d->trace, err))
		return -ENOMEM;
	ret = kb_tiles_create(&d->tiles, d->trace, err);
	parts.tiles = d->tiles;
	if (ret)
		return ret;
	if (kb_wakeups_create(&d->wakeups, &parts) || kb_detector_resolve(d))
		return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
	return 0;
}

int kb_detector_create(struct kb_detector **out, const struct kb_triggers *triggers,
		       struct kb_trace *trace, const struct kb_detector_options *options,
		       struct kb_error *err)
{
	struct kb_detector *d = calloc(1, sizeof(*d));
	int ret;

	*out = NULL;
	if (!d)
		return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
	d->triggers = triggers;
	d->trace = trace;
	d->header = kb_trace_header(trace);
	d->tasks = kb_trace_tasks(trace, err);
	d->countings = calloc((size_t)kb_triggers_nr(triggers) + 1, sizeof(*d->countings));
	look_at_triggers(d);
	ret = !d->tasks || !d->countings ?
	      kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory") :
	      KB_OPTIONS(&d->how, options, err) ?: create_parts(d, err);
	if (ret)
		kb_detector_destroy(d);
	else
		*out = d;
	return ret;
}

void kb_detector_destroy(struct kb_detector *d)
{
	if (!d)
		return;
	for (uint32_t i = 0; d->countings && i < kb_triggers_nr(d->triggers); i++) {
		free(d->countings[i].counters);
		free(d->countings[i].series);
		free(d->countings[i].levels);
	}
	free(d->countings);
	kb_wakeups_destroy(d->wakeups);
	kb_tiles_destroy(d->tiles);
	kb_gaps_release(&d->gaps);
	free(d->found);
	free(d);
}

void kb_detector_use_names(struct kb_detector *d, const struct kb_detector_names *names)
{
	d->names = names;
}
