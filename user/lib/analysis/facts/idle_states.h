/* SPDX-License-Identifier: MIT */
/*
 * The idle states of each CPU, from facts "kbarman.idle.STATE=RESIDENCY,LATENCY,DISABLED,NAME" in
 * us, which hold for every CPU without a fact "kbarman.idle.STATE.CPU=" of its own.
 */
#ifndef KB_LIB_ANALYSIS_FACTS_IDLE_STATES_H
#define KB_LIB_ANALYSIS_FACTS_IDLE_STATES_H

#include <kbarman/barman.h>
#include <kbarman/text.h>

#include "base/table.h"

/* A CPU and one of its states, which may be unknown, as one number. */
static inline uint64_t kb_idle_state_key(uint32_t core, int state)
{
	return (uint64_t)core << 32 | ((uint32_t)state + 1);
}

struct kb_idle_states {
	struct kb_table rows;
};

/* Read the facts of @header, which lives as long as @states. Returns 0 or -ENOMEM. */
int kb_idle_states_create(struct kb_idle_states *states, const struct kb_header *header);
void kb_idle_states_release(struct kb_idle_states *states);

/* The name of @state of @core; empty: the capture does not say. */
struct kb_text kb_idle_states_name(const struct kb_idle_states *states, uint32_t core, int state);

/* How long a halt in @state has to last to pay, in ns; 0: unknown. */
uint64_t kb_idle_states_residency(const struct kb_idle_states *states, uint32_t core, int state);

/*
 * Of a halt of @ns in @state, of which Linux says that it was too deep or, if @too_shallow, not
 * deep enough: the deepest state that would have paid. KB_STATE_UNKNOWN: the capture does not say.
 */
int kb_idle_states_paid(const struct kb_idle_states *states, uint32_t core, int state,
			bool too_shallow, uint64_t ns);

#endif
