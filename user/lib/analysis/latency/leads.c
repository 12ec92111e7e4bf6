// SPDX-License-Identifier: MIT
/* See leads.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/facts/object_names.h"
#include "analysis/latency/leads.h"
#include "analysis/time/death.h"
#include "analysis/time/origin.h"
#include "analysis/time/sender.h"
#include "analysis/time/waker.h"
#include "base/array.h"

#define LINKS_MAX	200000U
#define STAYING_MAX	1000000U	/* the same if tasks stay: then each keeps its own */
/*
 * To say who ran while a task waited for its CPU, so many pieces are looked at on average, and more of them for
 * a long wait behind short ones.
 */
#define PIECES_MEAN	64U
#define PIECES_STOCK	4096U

/* ---- chains of tasks ---- */

static struct kb_lead *get_task(struct kb_leads *leads, uint32_t task_id, int64_t now)
{
	uint64_t key = task_id;
	struct kb_lead *task = kb_table_get(&leads->tasks, &key);

	if (task && task->state == KB_LEAD_NEW) {
		task->state = KB_LEAD_RUNS;
		task->head = task->before = KB_CHAIN_NONE;
		task->since = task->first = task->ran = now;
	}
	return task;
}

/* What @task did since task->since, until the record of @walk, becomes a link. */
static int add_link(struct kb_leads *leads, struct kb_lead *task, const struct kb_walk *walk,
		    enum kb_link_kind kind, const struct kb_origin *by)
{
	static const struct kb_origin nobody = { .kind = KB_TILE_UNKNOWN };
	const struct kb_link link = {
		.kind = kind,
		.task_id = (uint32_t)task->key,
		.by = by ? *by : nobody,
		.ticks = walk->event.timestamp,
		.start = task->since,
		.end = walk->ns,
		.object = kind == KB_LINK_WAIT || kind == KB_LINK_UNKNOWN ? task->object : (struct kb_object){ 0 },
		.waiter = (uint32_t)task->key,
	};
	uint32_t head;

	if (walk->ns <= task->since)
		return 0;
	head = kb_chains_add(&leads->chains, task->head, &link);
	if (head == KB_CHAIN_NONE)
		return -ENOMEM;
	task->head = head;
	task->since = walk->ns;
	return 0;
}

static int add_run(struct kb_leads *leads, struct kb_lead *task, const struct kb_walk *walk)
{
	/* a record that is out of order counts as one with the time of the record before it */
	task->ran = walk->ns > task->since ? walk->ns : task->since;
	task->ran_ticks = walk->event.timestamp;
	return add_link(leads, task, walk, KB_LINK_RUN, NULL);
}

/* Tasks, softirqs or interrupts: what had most of that time. */
static enum kb_part most_of(const uint64_t parts[KB_PARTS])
{
	enum kb_part most = KB_PART_TASK;

	if (parts[KB_PART_SOFTIRQ] > parts[most])
		most = KB_PART_SOFTIRQ;
	return parts[KB_PART_IRQ] > parts[most] ? KB_PART_IRQ : most;
}

/* What ran most on this CPU while @task waited for it. @parts: what the CPU did in that time. */
static struct kb_origin most_ran(struct kb_leads *leads, const struct kb_lead *task, const struct kb_walk *walk,
				 const uint64_t parts[KB_PARTS])
{
	struct kb_origin most = { .kind = KB_TILE_UNKNOWN };
	enum kb_part part = most_of(parts);
	struct kb_ran ran = { .nr = 0 };
	uint64_t ns = 0;
	uint32_t i;

	leads->stock += PIECES_MEAN;
	if (leads->stock > PIECES_STOCK)
		leads->stock = PIECES_STOCK;
	kb_history_look(leads->history, walk->event.core, task->since, walk->ns, leads->stock, kb_ran_take, &ran);
	leads->stock -= ran.looked;
	for (i = 0; i < ran.nr; i++) {
		if (kb_history_part(ran.pieces[i].what.kind) != part || ran.pieces[i].ns <= ns)
			continue;
		ns = ran.pieces[i].ns;
		most = ran.pieces[i].what;
	}
	return most;
}

/* ---- records ---- */

static int leaves(struct kb_leads *leads, const struct kb_walk *walk)
{
	struct kb_lead *task = get_task(leads, walk->running, walk->ns);

	if (!task || add_run(leads, task, walk))
		return -ENOMEM;
	task->object = walk->event.task_switch.object;
	if (walk->event.task_switch.reason == KB_SWITCH_BLOCKED) {
		task->state = kb_is_death(kb_trace_header(leads->trace), walk->event.task_switch.prev_state) ?
			      KB_LEAD_DEAD : KB_LEAD_BLOCKED;
	} else {
		task->state = KB_LEAD_PREEMPTED;
		task->woken_early = false;
		task->idled = !walk->event.task_id;
		task->core = walk->event.core;
	}
	return 0;
}

/*
 * Whether @task, which was preempted, was in no queue of a CPU: the one that it left went idle instead of it, or did
 * little else until it ran there again. @parts: what the CPU on which it runs again did meanwhile.
 */
static bool was_throttled(const struct kb_lead *task, const struct kb_walk *walk, const uint64_t parts[KB_PARTS])
{
	if (task->idled || task->core != walk->event.core || walk->ns <= task->since)
		return task->idled;
	return parts[KB_PART_AWAKE] + parts[KB_PART_HALT] > ((uint64_t)walk->ns - (uint64_t)task->since) / 2;
}

/* @task waited for the CPU on which it runs now. */
static int waited_for_cpu(struct kb_leads *leads, struct kb_lead *task, const struct kb_walk *walk)
{
	bool preempted = task->state == KB_LEAD_PREEMPTED;
	uint64_t parts[KB_PARTS] = { 0 };
	struct kb_origin ran;

	if (walk->ns > task->since)
		kb_history_split(leads->history, walk->event.core, task->since, walk->ns, parts);
	if (preempted && was_throttled(task, walk, parts))
		return add_link(leads, task, walk, KB_LINK_THROTTLED, NULL);
	ran = most_ran(leads, task, walk, parts);
	return add_link(leads, task, walk, preempted ? KB_LINK_PREEMPTED : KB_LINK_QUEUE, &ran);
}

static int runs(struct kb_leads *leads, const struct kb_walk *walk)
{
	struct kb_lead *task = get_task(leads, walk->event.task_id, walk->ns);
	int ret = 0;

	if (!task)
		return -ENOMEM;
	if (task->state == KB_LEAD_PREEMPTED || task->state == KB_LEAD_WOKEN || task->woken_early)
		ret = waited_for_cpu(leads, task, walk);
	else if (task->state == KB_LEAD_BLOCKED || task->state == KB_LEAD_DEAD)
		ret = add_link(leads, task, walk, KB_LINK_UNKNOWN, NULL);
	task->state = KB_LEAD_RUNS;
	task->woken_early = false;
	kb_chains_drop(&leads->chains, task->before);
	task->before = KB_CHAIN_NONE;
	return ret;
}

/* @waker wakes @task, which takes its chain, */
static int take_chain(struct kb_leads *leads, struct kb_lead *task, const struct kb_lead *waker)
{
	if (task->before == KB_CHAIN_NONE)
		task->before = task->head;
	else
		kb_chains_drop(&leads->chains, task->head);
	task->head = kb_chains_hold(&leads->chains, waker->head);
	task->since = waker->since;
	return 0;
}

/* or which waited as long as that did what it did. */
static int look_through(struct kb_leads *leads, struct kb_lead *task, const struct kb_lead *waker)
{
	/* that is what is shown if the waker has no chain */
	const struct kb_link link = {
		.kind = KB_LINK_UNSEEN, .task_id = (uint32_t)waker->key, .by.kind = KB_TILE_UNKNOWN,
		.ticks = waker->ran_ticks, .start = task->since, .end = waker->since,
		.object = task->object, .waiter = (uint32_t)task->key,
	};
	uint32_t head;

	if (link.end <= link.start)
		return 0;
	head = kb_chains_add_through(&leads->chains, task->head, &link, waker->head);
	if (head == KB_CHAIN_NONE)
		return -ENOMEM;
	task->head = head;
	task->since = link.end;
	return 0;
}

static int take_wakeup(struct kb_leads *leads, struct kb_lead *task, uint32_t waker_id,
		       const struct kb_walk *walk)
{
	struct kb_lead *waker = kb_table_find(&leads->tasks, &(uint64_t){ waker_id });

	if (add_run(leads, waker, walk))
		return -ENOMEM;
	return leads->stays ? look_through(leads, task, waker) : take_chain(leads, task, waker);
}

/*
 * Whether the task that runs woke in a softirq of its own: it sent something to another one of its
 * machine. Where nothing tells who asked for the softirq, the addresses of the socket do.
 */
static bool wakes_by_sending(const struct kb_leads *leads, const struct kb_event *event,
			     const struct kb_origin *waker)
{
	return waker->kind == KB_TILE_SOFTIRQ &&
	       (waker->id == KB_ORIGIN_ANY || kb_softirq_is_net_rx(waker->id)) &&
	       kb_tiles_sender(leads->tiles, event->core) == KB_SENDER_UNKNOWN &&
	       event->task_id && event->custom_counter.object.kind == KB_OBJECT_SOCKET &&
	       kb_object_names_is_local(kb_names_object(leads->names, event, event->task_id));
}

static int feed_waking(struct kb_leads *leads, const struct kb_walk *walk)
{
	const struct kb_event *event = &walk->event;
	struct kb_origin waker = kb_waker(leads->tiles, event);
	struct kb_lead *task;
	bool by_task;
	int ret;

	leads->wakeups++;
	if (wakes_by_sending(leads, event, &waker))
		waker = (struct kb_origin){ .kind = KB_TILE_TASK, .id = event->task_id };
	by_task = waker.kind == KB_TILE_TASK && waker.id != event->custom_counter.id;
	/* the task that runs here has not gone to sleep yet, whoever wakes it */
	if (event->custom_counter.id == event->task_id)
		return 0;
	if (!event->custom_counter.id || (by_task && !get_task(leads, waker.id, walk->ns)))
		return event->custom_counter.id ? -ENOMEM : 0;
	task = get_task(leads, event->custom_counter.id, walk->ns);
	if (!task)
		return -ENOMEM;
	if (task->state == KB_LEAD_PREEMPTED)
		return 0;
	if (task->state == KB_LEAD_RUNS && task->first < walk->ns) {
		task->woken_early = true;
		return 0;
	}
	/* one that has no record before this one waits, as long as is known */
	if (task->state == KB_LEAD_RUNS && leads->stays)
		task->since = kb_trace_first(leads->trace);
	ret = by_task ? take_wakeup(leads, task, waker.id, walk)
		      : add_link(leads, task, walk, KB_LINK_WAIT, &waker);
	task->state = KB_LEAD_WOKEN;
	return ret;
}

static int feed(struct kb_leads *leads, const struct kb_walk *walk)
{
	const struct kb_event *event = &walk->event;
	int ret = 0;

	if (event->type == KB_EVENT_TASK_SWITCH) {
		if (walk->known && walk->running)
			ret = leaves(leads, walk);
		if (!ret && event->task_id)
			ret = runs(leads, walk);
	} else if (event->type == KB_EVENT_CUSTOM_COUNTER &&
		   (event->custom_counter.what == KB_WHAT_WAKING ||
		    event->custom_counter.what == KB_WHAT_WAKING_NEW)) {
		ret = feed_waking(leads, walk);
	}
	return ret;
}

/* Puts the number of tiles into the history. Returns 0 or -ENOMEM. */
static int feed_tiles(struct kb_leads *leads, const struct kb_walk *walk)
{
	struct kb_tile tiles[KB_TILES_MOST];
	int nr = kb_tiles_feed(leads->tiles, walk, tiles), ret = nr < 0 ? nr : 0, i;

	for (i = 0; i < nr && !ret; i++)
		ret = kb_history_add(leads->history, &tiles[i]);
	return ret;
}

int kb_leads_feed(struct kb_leads *leads, const struct kb_walk *walk)
{
	return feed_tiles(leads, walk) ?: feed(leads, walk);
}

struct kb_lead *kb_leads_writer(struct kb_leads *leads, const struct kb_walk *walk)
{
	struct kb_lead *task = get_task(leads, walk->event.task_id, walk->ns);

	return task && !kb_leads_extend(leads, task, walk) ? task : NULL;
}

int kb_leads_extend(struct kb_leads *leads, struct kb_lead *lead, const struct kb_walk *walk)
{
	switch (lead->state) {
	case KB_LEAD_RUNS:
		return add_run(leads, lead, walk);
	case KB_LEAD_WOKEN:
		return add_link(leads, lead, walk, KB_LINK_QUEUE, NULL);
	case KB_LEAD_PREEMPTED:
		return add_link(leads, lead, walk, lead->idled ? KB_LINK_THROTTLED : KB_LINK_PREEMPTED, NULL);
	default:
		return add_link(leads, lead, walk, KB_LINK_UNKNOWN, NULL);
	}
}

/* ---- paths ---- */

/* A chain on the way back. */
struct part {
	uint32_t at;		/* its link that is next */
	uint32_t task_id;	/* whose it is, for what it does not have */
	uint64_t ticks;
	int64_t from, until;	/* what is left of it */
	struct kb_object object;	/* for which ... */
	uint32_t waiter;	/* ... waited meanwhile, for this chain */
};

/* The way back through chains, and what it has led through: links from the last one on. */
struct back {
	const struct kb_chain_link *all;
	struct kb_link *links;
	uint64_t nr, room;
	struct part *parts;
	uint32_t nr_parts, room_parts;
	bool cut;
};

static int push(struct back *back, uint32_t at, const struct kb_link *link, int64_t from,
		int64_t until)
{
	const struct part *outer;

	if (!KB_ARRAY_ROOM(back->parts, back->room_parts, (size_t)back->nr_parts + 1))
		return -ENOMEM;
	outer = back->nr_parts && !link->object.kind ? &back->parts[back->nr_parts - 1] : NULL;
	back->parts[back->nr_parts++] = (struct part){
		.at = at,
		.task_id = link->task_id,
		.ticks = link->ticks,
		.from = from,
		.until = until,
		.object = outer ? outer->object : link->object,
		.waiter = outer ? outer->waiter : link->waiter,
	};
	return 0;
}

/* @link of @part. Links that are alike are joined. */
static int put(struct back *back, const struct part *part, const struct kb_link *link, int64_t from, int64_t until)
{
	struct kb_link *last = back->nr ? &back->links[back->nr - 1] : NULL;
	struct kb_link next = *link;

	if (until <= from)
		return 0;
	next.start = from;
	next.end = until;
	if (!next.object.kind) {
		next.object = part->object;
		next.waiter = part->waiter;
	}
	if (last && kb_link_goes_on(&next, last)) {
		last->start = from;
		return 0;
	}
	if (!KB_ARRAY_ROOM(back->links, back->room, back->nr + 1))
		return -ENOMEM;
	back->links[back->nr++] = next;
	return 0;
}

/* A time of which the chain of @part says nothing. */
static int put_unseen(struct back *back, const struct part *part, int64_t from)
{
	const struct kb_link unseen = {
		.kind = KB_LINK_UNSEEN,
		.task_id = part->task_id,
		.ticks = part->ticks,
		.by.kind = KB_TILE_UNKNOWN,
	};

	return put(back, part, &unseen, from, part->until);
}

/* One step back, in the last part. */
static int step_back(struct back *back, bool whole)
{
	struct part *part = &back->parts[back->nr_parts - 1];
	const struct kb_link *link = part->at < KB_CHAIN_CUT ? &back->all[part->at].link : NULL;
	uint32_t through;
	int64_t from, until;
	int ret;

	if (!link || link->end <= part->from) {
		back->cut |= part->at == KB_CHAIN_CUT && part->until > part->from;
		ret = whole ? put_unseen(back, part, part->from) : 0;
		back->nr_parts--;
		return ret;
	}
	through = back->all[part->at].through;
	part->at = back->all[part->at].before;
	if (link->start >= part->until)
		return 0;
	from = link->start > part->from ? link->start : part->from;
	until = link->end < part->until ? link->end : part->until;
	ret = put_unseen(back, part, until);
	part->until = from;
	if (ret)
		return ret;
	return through == KB_CHAIN_NONE ? put(back, part, link, from, until) :
					  push(back, through, link, from, until);
}

int kb_leads_path(const struct kb_leads *leads, uint32_t head, struct kb_path *path)
{
	const struct kb_link whose = { .task_id = path->task_id, .ticks = path->ticks };
	struct back back = { .all = leads->chains.links };
	int ret = push(&back, head, &whose, path->from, path->until);

	while (!ret && back.nr_parts)
		ret = step_back(&back, leads->stays);
	free(back.parts);
	if (ret) {
		free(back.links);
		return ret;
	}
	for (uint64_t i = 0; i < back.nr / 2; i++) {
		struct kb_link other = back.links[i];

		back.links[i] = back.links[back.nr - 1 - i];
		back.links[back.nr - 1 - i] = other;
	}
	for (uint64_t i = 0; i < back.nr; i++)
		back.links[i].in_gap =
			kb_gaps_overlap(&leads->gaps, back.links[i].start, back.links[i].end);
	path->links = back.links;
	path->nr = back.nr;
	path->cut = back.cut;
	if (back.nr)
		path->from = back.links[0].start;
	return 0;
}

/* ---- begin and end ---- */

int kb_leads_init(struct kb_leads *leads, struct kb_trace *trace, bool stays, struct kb_error *err)
{
	int ret = kb_trace_rewind(trace, err);

	leads->trace = trace;
	leads->stays = stays;
	kb_chains_init(&leads->chains, stays ? STAYING_MAX : LINKS_MAX);
	kb_table_init(&leads->tasks, sizeof(struct kb_lead), 1);
	leads->names = ret || !kb_trace_tasks(trace, err) ? NULL : kb_trace_names(trace, err);
	if (!ret && !leads->names)
		ret = -ENOMEM;
	ret = ret ?: kb_gaps_read(&leads->gaps, trace, err);
	if (!ret && (kb_tiles_create(&leads->tiles, trace, err) ||
		     kb_history_create(&leads->history, kb_trace_header(trace)->max_cores)))
		ret = kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
	return ret;
}

void kb_leads_release(struct kb_leads *leads)
{
	kb_chains_release(&leads->chains);
	kb_table_release(&leads->tasks);
	kb_gaps_release(&leads->gaps);
	kb_history_destroy(leads->history);
	kb_tiles_destroy(leads->tiles);
}
