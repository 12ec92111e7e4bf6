// SPDX-License-Identifier: MIT
/* The trees of calls of a report, and the longest waits with what was called in them. */
#include "export/text/report_parts.h"

/* Prints callers above the functions that they call. A share includes all functions below. */
void text_put_tree(const struct report_text *report, const struct kb_call_tree *tree, bool times)
{
	uint64_t all = tree->nodes[KB_CALLTREE_ROOT].total;
	char label[512];
	uint32_t i;

	text_put_chosen(report, times ? "Waiting, callers first (times in ms)" : "Calls, callers first",
			false);
	text_printf(report, "#     Total       Self  %sTask, and below it functions\n#\n",
		    times ? "      Time  " : "");
	for (i = 1; i < tree->nr; i++) {
		const struct kb_calltree_node *node = &tree->nodes[tree->order[i]];

		if (!node->total || !text_is_shown(report, node->total, all))
			continue;
		kb_calltree_label(node, label, sizeof(label));
		text_put_share(report, node->total, all, 10);
		text_printf(report, " ");
		text_put_share(report, node->self, all, 9);
		text_printf(report, "  ");
		if (times)
			text_printf(report, "%10.3f  ", text_ms(node->total));
		text_printf(report, "%*s", 2 * (int)(node->depth - 1), "");
		text_put(report, label, 0);
		text_printf(report, "%s%s\n", node->kernel ? " [k]" : "",
			    node->inlined ? " (inlined)" : "");
	}
}

#define WAITS		10	/* shown waits */
#define WAIT_FRAMES	24	/* shown frames of each wait */

/* Prints the functions in which the task waited, innermost first. */
static void put_wait_stack(const struct report_text *report, const struct kb_call_tree *tree,
			   uint32_t i)
{
	const struct kb_calltree_node *node = &tree->nodes[i];
	unsigned int frames = 0;
	char label[512];

	for (; node->depth > 1 && frames < WAIT_FRAMES; node = &tree->nodes[node->parent]) {
		if (!node->image_base[0])
			continue; /* the node of the reason, which is printed already */
		kb_calltree_label(node, label, sizeof(label));
		text_printf(report, "%16s", "");
		text_put(report, label, 0);
		text_printf(report, "%s\n", node->kernel ? " [k]" : "");
		frames++;
	}
	if (node->depth > 1)
		text_printf(report, "%16s(%u more)\n", "", node->depth - 1);
}

/* Where the task waited: the same for waits of one call chain of tasks of one name. */
static bool has_stack(const struct kb_call_tree *tree, uint32_t mark)
{
	return tree->nodes[mark].image_base[0];
}

/* How many of the waits from @i on are at the place of this one. 0: it was shown already. */
static uint32_t count_alike(const struct report_text *report, const struct kb_wait *waits,
			    uint32_t nr, uint32_t i)
{
	uint32_t alike = 1;

	if (!has_stack(&report->got->waiting, waits[i].mark))
		return 1;
	for (uint32_t other = 0; other < i; other++)
		if (waits[other].mark == waits[i].mark)
			return 0;
	for (uint32_t other = i + 1; other < nr; other++)
		alike += waits[other].mark == waits[i].mark;
	return alike;
}

static void put_wait(const struct report_text *report, const struct kb_wait *wait, uint32_t alike,
		     uint32_t nr)
{
	text_printf(report, "%12.3f  %12.3f  %-9s", text_ms(wait->ns),
		    text_ms((uint64_t)wait->since - (uint64_t)kb_trace_first(report->trace)),
		    wait->asleep    ? "asleep"
		    : wait->blocked ? "blocked"
				    : "preempted");
	text_put_task_name(report, wait->task_id, wait->ticks);
	if (wait->waker.kind != KB_TILE_UNKNOWN) {
		text_printf(report, "%14swoken by ", "");
		text_put_origin(report, &wait->waker, wait->woken);
		text_printf(report, "\n");
	}
	if (alike > 1)
		text_printf(report, "%14s%u of the longest %u were here:\n", "", alike, nr);
	put_wait_stack(report, &report->got->waiting, wait->mark);
}

void text_put_waits(const struct report_text *report, const char *title,
		    const struct kb_wait *waits, uint32_t nr)
{
	uint32_t i, shown = 0, alike;

	if (!nr)
		return;
	text_put_chosen(report, title, false);
	text_printf(report, "#       Wait         Since  Why            PID      TID  Task\n#\n");
	for (i = 0; i < nr && shown < WAITS; i++) {
		alike = count_alike(report, waits, nr, i);
		if (!alike)
			continue;
		put_wait(report, &waits[i], alike, nr);
		shown++;
	}
}
