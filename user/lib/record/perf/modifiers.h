/* SPDX-License-Identifier: MIT */
/* The letters behind an event: in which part of the machine it is counted, and how precisely. */
#ifndef KB_LIB_RECORD_PERF_MODIFIERS_H
#define KB_LIB_RECORD_PERF_MODIFIERS_H

#include <stdbool.h>

#include <kbarman/perf_events.h>

#define KB_EVENT_NOWHERE \
	(KB_PERF_NO_USER | KB_PERF_NO_KERNEL | KB_PERF_NO_HV)
#define KB_MODIFIERS_MAX	8	/* bytes of kb_modifiers_text() */

/*
 * Change @flags by the letters @text, as perf does: u, k and h count there and not elsewhere, but
 * for what letters of the same event say; each p makes samples more precise. False: @text is empty
 * or has other letters, or more than three p.
 */
bool kb_modifiers_apply(const char *text, __u32 *flags);

/* The letters for @flags. */
const char *kb_modifiers_text(__u32 flags, char text[KB_MODIFIERS_MAX]);

#endif
