/* SPDX-License-Identifier: MIT */
/* The file that says how the agent is: lines "KEY=VALUE", whole at any moment. */
#ifndef KB_AGENT_STATE_H
#define KB_AGENT_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/folder.h"
#include "agent/session.h"

struct agent_state {
	int64_t started_ns;		/* CLOCK_REALTIME */
	const struct agent_session *const *sessions;
	unsigned int nr_sessions;
	unsigned int wanted;		/* how many the configuration has */
	const char *trouble;		/* of the agent itself; "" */
	uint64_t config_hash;		/* of the configuration's text */
	int64_t config_ns;		/* when it was read, CLOCK_REALTIME */
	const char *config_trouble;	/* why a later one is not in use; "" */
	struct agent_folder_counts folder;
};

/* Writes it to @path. Returns 0 or a negative errno. */
int agent_state_write(const char *path, const struct agent_state *state);

/*
 * Prints it, for people or as JSON. Returns the exit status: 0: all is well; 1: there is trouble; 2:
 * no agent runs, after a message.
 */
int agent_state_show(const char *path, bool as_json);

#endif
