// SPDX-License-Identifier: MIT
/* The loop that exports share. */
#include <errno.h>

#include "export/run.h"
#include "export/walk.h"

int kb_walk_init(struct kb_walk *walk, struct kb_barman *barman, struct kb_error *err)
{
	int error;

	*walk = (struct kb_walk) { .barman = barman };
	error = kb_names_create(&walk->names, barman, err);
	if (!error)
		error = kb_timeline_create(&walk->timeline, barman, walk->names, err);
	return error ? error : kb_export_rewind(barman, err);
}

void kb_walk_release(struct kb_walk *walk)
{
	kb_timeline_destroy(walk->timeline);
	kb_names_destroy(walk->names);
}

bool kb_walk_next(struct kb_walk *walk, struct kb_error *err)
{
	walk->damage = kb_barman_next(walk->barman, &walk->event, err);
	if (walk->damage <= 0)
		return false;
	walk->ns = kb_barman_ns(walk->barman, walk->event.timestamp);
	if (!kb_timeline_running(walk->timeline, walk->event.core, &walk->running))
		walk->running = 0;
	walk->nr_slices = kb_timeline_feed(walk->timeline, &walk->event, walk->ns, walk->slices);
	return true;
}

uint32_t kb_walk_state(const struct kb_walk *walk, uint32_t task_id)
{
	const struct kb_header *header = kb_barman_header(walk->barman);
	int state = walk->event.task_switch.prev_state;

	if (!task_id)
		return KB_FTRACE_RUNNING;	/* the idle task can always run */
	if (walk->event.task_switch.reason == KB_SWITCH_PREEMPTED)
		return KB_FTRACE_PREEMPTED;
	if (kb_state_letter(header, state) == KB_LETTER_DEAD)
		return kb_names_task(walk->names, task_id, walk->event.timestamp)->tgid == task_id ?
			KB_FTRACE_ZOMBIE : KB_FTRACE_DEAD;
	return kb_state_ftrace(header, state);
}

int kb_walk_end(const struct kb_walk *walk, struct kb_out *out, bool no_memory,
		struct kb_error *err)
{
	if (no_memory)
		return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
	return kb_export_end(walk->barman, out, walk->damage, err);
}
