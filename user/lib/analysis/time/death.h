/* SPDX-License-Identifier: MIT */
#ifndef KB_LIB_ANALYSIS_TIME_DEATH_H
#define KB_LIB_ANALYSIS_TIME_DEATH_H

#include <kbarman/barman.h>

/* Whether a task that leaves its CPU in @state, a prev_state of the capture, never runs again. */
static inline bool kb_is_death(const struct kb_header *header, int state)
{
	const char letter = kb_state_letter(header, state);

	return letter == KB_LETTER_DEAD || letter == KB_LETTER_ZOMBIE;
}

#endif
