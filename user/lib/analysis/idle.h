/* SPDX-License-Identifier: MIT */
/*
 * The idle loop: what a CPU does that has nothing to do. Samples that fall into it are no
 * work, however many they are. Interrupts and softirqs that an idle CPU handles are work,
 * though they are the idle task's as well: so the function tells, and where the kernel's
 * functions have no names nobody can.
 */
#ifndef KB_LIB_ANALYSIS_IDLE_H
#define KB_LIB_ANALYSIS_IDLE_H

#include <stdbool.h>

#include <kbarman/event.h>
#include <kbarman/symbol.h>

/* The same by name, of a function of the kernel. */
bool kb_idle_name(const char *name);

/* Is that a function in which the idle loop waits? */
bool kb_idle_symbol(const struct kb_symbol *symbol);

/* Did the sample @event, which fell on @symbol, fall into the idle loop? */
static inline bool kb_idle_sample(const struct kb_event *event, const struct kb_symbol *symbol)
{
	return !event->task_id && kb_idle_symbol(symbol);
}

#endif
