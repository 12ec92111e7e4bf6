// SPDX-License-Identifier: MIT
#include <errno.h>

#include "analysis/wakeups.h"

struct row {
	uint64_t key;		/* task */
	bool pending;
	struct kb_wakeup wakeup;
};

void kb_wakeups_init(struct kb_wakeups *wakeups)
{
	kb_table_init(&wakeups->rows, sizeof(struct row), 1);
}

void kb_wakeups_release(struct kb_wakeups *wakeups)
{
	kb_table_release(&wakeups->rows);
}

static int note_wakeup(struct kb_wakeups *wakeups, const struct kb_walk *walk)
{
	const struct kb_event *event = &walk->event;
	uint64_t task = event->custom_counter.id;
	struct row *row;

	if (!task)
		return 0;
	row = kb_table_get(&wakeups->rows, &task);
	if (!row)
		return -ENOMEM;
	row->pending = true;
	row->wakeup = (struct kb_wakeup){
		.task_id = event->custom_counter.id,
		.waker = event->task_id,
		.from_core = event->core,
		.context = event->custom_counter.context,
		.is_new = event->custom_counter.what == KB_WHAT_WAKING_NEW,
		.timestamp = event->timestamp,
		.from = walk->ns,
	};
	return 0;
}

/* A task that leaves its CPU though it could run on was woken before it had slept. */
static void forget_preempted(struct kb_wakeups *wakeups, const struct kb_walk *walk)
{
	uint64_t task = walk->running;
	struct row *row;

	if (!walk->known || walk->event.task_switch.reason != KB_SWITCH_PREEMPTED)
		return;
	row = kb_table_find(&wakeups->rows, &task);
	if (row)
		row->pending = false;
}

int kb_wakeups_feed(struct kb_wakeups *wakeups, const struct kb_walk *walk, struct kb_wakeup *done)
{
	const struct kb_event *event = &walk->event;
	struct row *row;
	uint64_t task;

	if (event->type == KB_EVENT_CUSTOM_COUNTER)
		return event->custom_counter.what == KB_WHAT_WAKING ||
		       event->custom_counter.what == KB_WHAT_WAKING_NEW ?
		       note_wakeup(wakeups, walk) : 0;
	if (event->type != KB_EVENT_TASK_SWITCH || !wakeups->rows.nr)
		return 0;
	forget_preempted(wakeups, walk);
	task = event->task_id;
	row = kb_table_find(&wakeups->rows, &task);
	if (!row || !row->pending)
		return 0;
	row->pending = false;
	*done = row->wakeup;
	done->to_core = event->core;
	done->to = walk->ns;
	return 1;
}
