// SPDX-License-Identifier: MIT
/* See leads.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/facts/object_names.h"
#include "analysis/latency/leads.h"
#include "analysis/time/origin.h"
#include "analysis/time/waker.h"

#define LINKS_MAX	200000U
#define PIECES		64U	/* looked at, to say who ran while a task waited for its CPU */
#define RAN_MAX		16U	/* different ones of these */

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

struct ran {
	struct kb_latency_piece pieces[RAN_MAX];
	uint32_t nr;
};

static bool take_piece(void *context, const struct kb_origin *what, uint64_t ns)
{
	struct ran *ran = context;
	uint32_t i;

	for (i = 0; i < ran->nr; i++)
		if (kb_origin_key(&ran->pieces[i].what) == kb_origin_key(what))
			break;
	if (i == RAN_MAX)
		return true;
	if (i == ran->nr)
		ran->pieces[ran->nr++] = (struct kb_latency_piece){ .what = *what };
	ran->pieces[i].ns += ns;
	return true;
}

/* What ran most on this CPU while @task waited for it. */
static struct kb_origin most_ran(const struct kb_leads *leads, const struct kb_lead *task,
				 const struct kb_walk *walk)
{
	struct kb_origin most = { .kind = KB_TILE_UNKNOWN };
	struct ran ran = { .nr = 0 };
	uint64_t ns = 0;
	uint32_t i;

	kb_history_look(leads->history, walk->event.core, task->since, walk->ns, PIECES, take_piece,
			&ran);
	for (i = 0; i < ran.nr; i++) {
		if (ran.pieces[i].ns <= ns)
			continue;
		ns = ran.pieces[i].ns;
		most = ran.pieces[i].what;
	}
	return most;
}

/* ---- records ---- */

static bool is_death(const struct kb_leads *leads, const struct kb_event *event)
{
	char letter = kb_state_letter(kb_trace_header(leads->trace), event->task_switch.prev_state);

	return letter == KB_LETTER_DEAD || letter == KB_LETTER_ZOMBIE;
}

static int leaves(struct kb_leads *leads, const struct kb_walk *walk)
{
	struct kb_lead *task = get_task(leads, walk->running, walk->ns);

	if (!task || add_run(leads, task, walk))
		return -ENOMEM;
	if (walk->event.task_switch.reason == KB_SWITCH_BLOCKED) {
		task->state = is_death(leads, &walk->event) ? KB_LEAD_DEAD : KB_LEAD_BLOCKED;
	} else {
		task->state = KB_LEAD_PREEMPTED;
		task->woken_early = false;
	}
	return 0;
}

static int runs(struct kb_leads *leads, const struct kb_walk *walk)
{
	struct kb_lead *task = get_task(leads, walk->event.task_id, walk->ns);
	struct kb_origin ran;
	int ret = 0;

	if (!task)
		return -ENOMEM;
	ran = most_ran(leads, task, walk);
	if (task->state == KB_LEAD_PREEMPTED)
		ret = add_link(leads, task, walk, KB_LINK_PREEMPTED, &ran);
	else if (task->state == KB_LEAD_WOKEN || task->woken_early)
		ret = add_link(leads, task, walk, KB_LINK_QUEUE, &ran);
	else if (task->state == KB_LEAD_BLOCKED || task->state == KB_LEAD_DEAD)
		ret = add_link(leads, task, walk, KB_LINK_UNKNOWN, NULL);
	task->state = KB_LEAD_RUNS;
	task->woken_early = false;
	kb_chains_drop(&leads->chains, task->before);
	task->before = KB_CHAIN_NONE;
	return ret;
}

/* @task takes the chain of the task that wakes it. */
static int take_chain(struct kb_leads *leads, struct kb_lead *task, uint32_t waker_id,
		      const struct kb_walk *walk)
{
	uint64_t key = waker_id;
	struct kb_lead *waker = kb_table_find(&leads->tasks, &key);

	if (add_run(leads, waker, walk))
		return -ENOMEM;
	if (task->before == KB_CHAIN_NONE)
		task->before = task->head;
	else
		kb_chains_drop(&leads->chains, task->head);
	task->head = kb_chains_hold(&leads->chains, waker->head);
	task->since = waker->since;
	return 0;
}

/* Whether the task that runs woke in a softirq of its own: it sent something to another one of its machine. */
static bool wakes_by_sending(const struct kb_leads *leads, const struct kb_event *event, const struct kb_origin *waker)
{
	const char *softirq = waker->id == KB_ORIGIN_ANY ? NULL : kb_softirq_name(waker->id);

	return waker->kind == KB_TILE_SOFTIRQ && (waker->id == KB_ORIGIN_ANY || (softirq && strcmp(softirq, "NET_RX") == 0)) &&
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
	/* one that has no record before this one waits */
	if (task->state == KB_LEAD_RUNS && task->first < walk->ns) {
		task->woken_early = true;
		return 0;
	}
	ret = by_task ? take_chain(leads, task, waker.id, walk)
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
	int ret = 0;

	if (task)
		ret = task->state == KB_LEAD_RUNS ? add_run(leads, task, walk) : runs(leads, walk);
	return ret ? NULL : task;
}

int kb_leads_extend(struct kb_leads *leads, struct kb_lead *lead, const struct kb_walk *walk)
{
	switch (lead->state) {
	case KB_LEAD_RUNS:
		return add_run(leads, lead, walk);
	case KB_LEAD_WOKEN:
		return add_link(leads, lead, walk, KB_LINK_QUEUE, NULL);
	case KB_LEAD_PREEMPTED:
		return add_link(leads, lead, walk, KB_LINK_PREEMPTED, NULL);
	default:
		return add_link(leads, lead, walk, KB_LINK_UNKNOWN, NULL);
	}
}

/* ---- paths ---- */

/* Join links that are alike. Returns how many there are then. */
static uint64_t join(struct kb_link *links, uint64_t nr)
{
	uint64_t at = 0;

	for (uint64_t i = 1; i < nr; i++) {
		if (!kb_link_goes_on(&links[at], &links[i])) {
			links[++at] = links[i];
			continue;
		}
		links[at].end = links[i].end;
		links[at].ticks = links[i].ticks;
	}
	return nr ? at + 1 : 0;
}

/* The first link begins where the path does. */
static uint64_t begin_path(struct kb_path *path, struct kb_link *links, uint64_t nr, bool whole)
{
	const struct kb_link unseen = {
		.kind = KB_LINK_UNSEEN,
		.task_id = nr ? links[0].task_id : path->task_id,
		.by.kind = KB_TILE_UNKNOWN,
		.ticks = nr ? links[0].ticks : path->ticks,
		.start = path->from,
		.end = nr ? links[0].start : path->until,
	};

	if (nr && links[0].start < path->from)
		links[0].start = path->from;
	path->cut &= nr && links[0].start > path->from;
	if (whole && unseen.start < unseen.end) {
		memmove(links + 1, links, nr * sizeof(*links));
		links[0] = unseen;
		return nr + 1;
	}
	if (nr)
		path->from = links[0].start;
	return nr;
}

int kb_leads_path(const struct kb_leads *leads, uint32_t head, struct kb_path *path, bool whole)
{
	const struct kb_chain_link *all = leads->chains.links;
	struct kb_link *links;
	uint64_t nr = 0, at;
	uint32_t link;

	/* what comes later is not part of it */
	while (head < KB_CHAIN_CUT && all[head].link.start >= path->until)
		head = all[head].before;
	for (link = head; link < KB_CHAIN_CUT && all[link].link.end > path->from; link = all[link].before)
		nr++;
	path->cut = link == KB_CHAIN_CUT;
	links = calloc(nr + 1, sizeof(*links));
	if (!links)
		return -ENOMEM;
	for (link = head, at = nr; at; link = all[link].before)
		links[--at] = all[link].link;
	if (nr && links[nr - 1].end > path->until)
		links[nr - 1].end = path->until;
	path->nr = begin_path(path, links, join(links, nr), whole);
	for (at = 0; at < path->nr; at++)
		links[at].in_gap = kb_gaps_overlap(&leads->gaps, links[at].start, links[at].end);
	path->links = links;
	return 0;
}

/* ---- begin and end ---- */

int kb_leads_init(struct kb_leads *leads, struct kb_trace *trace, struct kb_error *err)
{
	int ret = kb_trace_rewind(trace, err);

	leads->trace = trace;
	kb_chains_init(&leads->chains, LINKS_MAX);
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
