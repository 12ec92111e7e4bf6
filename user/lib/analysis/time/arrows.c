// SPDX-License-Identifier: MIT
#include <errno.h>

#include "analysis/time/arrows.h"

struct row {
	uint64_t key;		/* task */
	bool pending;
	bool preempted;		/* it can run, whoever wakes it */
	uint64_t gaps;		/* before that */
	struct kb_arrow arrow;
};

void kb_arrows_init(struct kb_arrows *arrows)
{
	kb_table_init(&arrows->rows, sizeof(struct row), 1);
	arrows->gaps = 0;
}

void kb_arrows_release(struct kb_arrows *arrows)
{
	kb_table_release(&arrows->rows);
}

static int note_wakeup(struct kb_arrows *arrows, const struct kb_walk *walk)
{
	const struct kb_event *event = &walk->event;
	uint64_t task = event->custom_counter.id;
	struct row *row;

	if (!task)
		return 0;
	row = kb_table_get(&arrows->rows, &task);
	if (!row)
		return -ENOMEM;
	if (row->preempted && row->gaps == arrows->gaps)
		return 0;
	row->pending = true;
	row->preempted = false;
	row->gaps = arrows->gaps;
	row->arrow = (struct kb_arrow){
		.task_id = event->custom_counter.id,
		.waker = event->task_id,
		.from_core = event->core,
		.context = event->custom_counter.context,
		.is_new = event->custom_counter.what == KB_WHAT_WAKING_NEW,
		.waker_known = walk->known,
		.timestamp = event->timestamp,
		.from = walk->ns,
	};
	return 0;
}

/* A task that leaves its CPU though it could run on was woken before it had slept. */
static int note_preempted(struct kb_arrows *arrows, const struct kb_walk *walk)
{
	uint64_t task = walk->running;
	struct row *row;

	if (!walk->known || !task || walk->event.task_switch.reason == KB_SWITCH_BLOCKED)
		return 0;
	row = kb_table_get(&arrows->rows, &task);
	if (!row)
		return -ENOMEM;
	row->pending = false;
	row->preempted = true;
	row->gaps = arrows->gaps;
	return 0;
}

/* What lies in front of a gap says nothing of what is behind it. */
static void note_gaps(struct kb_arrows *arrows, const struct kb_walk *walk)
{
	unsigned int i;

	for (i = 0; i < walk->nr_slices; i++)
		arrows->gaps += walk->slices[i].kind == KB_SLICE_LOST;
}

int kb_arrows_feed(struct kb_arrows *arrows, const struct kb_walk *walk, struct kb_arrow *done)
{
	const struct kb_event *event = &walk->event;
	struct row *row;
	uint64_t task;
	bool woken;

	note_gaps(arrows, walk);
	if (event->type == KB_EVENT_CUSTOM_COUNTER)
		return event->custom_counter.what == KB_WHAT_WAKING ||
		       event->custom_counter.what == KB_WHAT_WAKING_NEW ?
		       note_wakeup(arrows, walk) : 0;
	if (event->type != KB_EVENT_TASK_SWITCH || !arrows->rows.nr)
		return 0;
	if (note_preempted(arrows, walk))
		return -ENOMEM;
	task = event->task_id;
	row = kb_table_find(&arrows->rows, &task);
	if (!row)
		return 0;
	woken = row->pending && row->gaps == arrows->gaps;
	row->pending = row->preempted = false;
	if (!woken)
		return 0;
	*done = row->arrow;
	done->to_core = event->core;
	done->to = walk->ns;
	return 1;
}
