// SPDX-License-Identifier: MIT
/*
 * A switch is resolved to a tree node at once, because its chain is valid only until the next
 * event. The scheduling analysis stores the number of the node with the task, and returns it
 * when the wait is over.
 */
#include <errno.h>
#include <stdlib.h>

#include "analysis/samples/offcpu.h"
#include "base/heap.h"
#include "format/call_names.h"

struct kb_offcpu {
	struct kb_symbolizer *symbolizer;
	const char *machine;
	struct kb_sched *sched;
	struct kb_calltree *tree;
	bool (*wanted)(void *context, const struct kb_wait *wait);
	void *context;
	bool has_chains;
	struct longest {
		struct kb_wait waits[KB_OFFCPU_LONGEST];	/* a heap, the shortest on top */
		uint32_t nr;
	} longest, sleeps;
};

static int compare(const void *left, const void *right)
{
	const struct kb_wait *a = left, *b = right;

	if (a->ns != b->ns)
		return a->ns > b->ns ? -1 : 1;
	if (a->since != b->since)
		return a->since < b->since ? -1 : 1;
	return (a->task_id > b->task_id) - (a->task_id < b->task_id);
}

/* The shortest of the longest waits is on top: it is the first one to go. */
static bool goes_before(const struct kb_wait *a, const struct kb_wait *b)
{
	return compare(a, b) > 0;
}

KB_HEAP(longest, struct kb_wait, goes_before)

static void remember(struct longest *longest, const struct kb_wait *wait)
{
	struct kb_wait *heap = longest->waits;

	if (longest->nr < KB_OFFCPU_LONGEST) {
		heap[longest->nr] = *wait;
		longest_up(heap, longest->nr++);
	} else if (compare(wait, &heap[0]) < 0) {
		heap[0] = *wait;
		longest_down(heap, longest->nr);
	}
}

static void take_wait(void *context, const struct kb_wait *wait)
{
	struct kb_offcpu *offcpu = context;

	if (!wait->mark || (offcpu->wanted && !offcpu->wanted(offcpu->context, wait)))
		return;
	kb_calltree_weigh(offcpu->tree, wait->mark, wait->ns);
	remember(wait->asleep ? &offcpu->sleeps : &offcpu->longest, wait);
}

int kb_offcpu_create(struct kb_offcpu **out, const struct kb_barman *barman,
		     const struct kb_tasks *tasks, struct kb_symbolizer *symbolizer,
		     struct kb_sched *sched, struct kb_error *err)
{
	struct kb_offcpu *offcpu = calloc(1, sizeof(*offcpu));
	int ret;

	if (!offcpu)
		return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
	offcpu->symbolizer = symbolizer;
	offcpu->machine = kb_barman_fact(barman, "machine");
	ret = kb_calltree_create(&offcpu->tree, tasks, err);
	if (ret) {
		free(offcpu);
		return ret;
	}
	offcpu->sched = sched;
	kb_sched_on_wait(sched, take_wait, offcpu);
	*out = offcpu;
	return 0;
}

void kb_offcpu_destroy(struct kb_offcpu *offcpu)
{
	if (!offcpu)
		return;
	kb_calltree_destroy(offcpu->tree);
	free(offcpu);
}

void kb_offcpu_filter(struct kb_offcpu *offcpu,
		      bool (*wanted)(void *context, const struct kb_wait *wait),
		      void *context)
{
	offcpu->wanted = wanted;
	offcpu->context = context;
}

#define OBJECT_IMAGE	"[syscall]"	/* in place of the image of a function */

static const char *object_text(const struct kb_offcpu *offcpu, const struct kb_event *event)
{
	const bool iowait = event->task_switch.object.flags & KB_OBJECT_IOWAIT;
	const char *name;

	if (kb_object_is_outside(&event->task_switch.object))
		return iowait ? "[page from a disk]" : "[in no system call]";
	name = kb_object_call_name(offcpu->machine, &event->task_switch.object);
	return name ?: "[another system call]";
}

int kb_offcpu_switch(struct kb_offcpu *offcpu, const struct kb_event *event,
		     const struct kb_slice *slice)
{
	bool blocked = slice->how == KB_END_BLOCKED;
	int64_t node;

	if ((!blocked && slice->how != KB_END_PREEMPTED) || !slice->has_task || !slice->task_id)
		return 0;
	offcpu->has_chains |= event->task_switch.nr_chain || event->task_switch.object.kind;
	node = kb_calltree_find(offcpu->tree, event, slice->task_id, offcpu->symbolizer);
	if (node >= 0 && event->task_switch.object.kind)
		node = kb_calltree_find_text(offcpu->tree, node, object_text(offcpu, event), OBJECT_IMAGE);
	else if (node >= 0 && !event->task_switch.nr_chain)
		node = kb_calltree_find_text(offcpu->tree, node,
					     blocked ? "[blocked]" : "[preempted]", "");
	if (node < 0)
		return node;
	kb_sched_mark(offcpu->sched, slice->task_id, node, event->timestamp);
	return 0;
}

const struct kb_wait *kb_offcpu_longest(struct kb_offcpu *offcpu, bool asleep, uint32_t *nr)
{
	struct longest *longest = asleep ? &offcpu->sleeps : &offcpu->longest;

	*nr = longest->nr;
	qsort(longest->waits, *nr, sizeof(longest->waits[0]), compare);
	return longest->waits;
}

struct kb_calltree *kb_offcpu_tree(struct kb_offcpu *offcpu)
{
	return offcpu->tree;
}

bool kb_offcpu_has_chains(const struct kb_offcpu *offcpu)
{
	return offcpu->has_chains;
}
