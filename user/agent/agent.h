/* SPDX-License-Identifier: MIT */
/*
 * agent/: kbarmand, which records all the time and knows nothing of names and symbols: sessions as
 * its configuration says, the folder of files, and how it tells others of itself.
 *
 * The agent: sessions as its configuration says, from the begin to a signal. One poll() waits for
 * the buffers and for signals: SIGTERM and SIGINT end the agent, SIGHUP lets it read its configuration
 * again, SIGUSR1 begins a new file in each session.
 */
#ifndef KB_AGENT_AGENT_H
#define KB_AGENT_AGENT_H

#include <stdbool.h>

/*
 * Runs the agent. @keep: the service manager keeps descriptors, so sessions go on while the agent is
 * not there. Returns the exit status.
 */
int agent_run(const char *config, bool keep);

/* Reads the configuration and says what is wrong. Returns the exit status. */
int agent_check(const char *path);

/* Prints what the running agent says of itself. Returns the exit status. */
int agent_status(const char *path, bool json);

#endif
