/* SPDX-License-Identifier: MIT */
/*
 * The idle loop: what a CPU executes when it has nothing to do. Samples in it are not work.
 * Interrupts and softirqs that an idle CPU handles are work, although the idle task executes
 * them, too. So the function decides. If kernel functions have no names, idle samples can't be
 * found.
 */
#ifndef KB_LIB_ANALYSIS_TIME_IDLE_H
#define KB_LIB_ANALYSIS_TIME_IDLE_H

#include <stdbool.h>

#include <kbarman/event.h>
#include <kbarman/symbol.h>

/* The same for the name of a kernel function. */
bool kb_idle_name(const char *symbol);

/* Whether the idle loop waits in that function. */
bool kb_idle_symbol(const struct kb_symbol *symbol);

/* Whether the sample @event, which fell on @symbol, is in the idle loop. */
static inline bool kb_idle_sample(const struct kb_event *event, const struct kb_symbol *symbol)
{
	return !event->task_id && kb_idle_symbol(symbol);
}

#endif
