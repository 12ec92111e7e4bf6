/* SPDX-License-Identifier: MIT */
/* The processes of the option -p. */
#ifndef KB_CLI_SESSION_PROCESSES_H
#define KB_CLI_SESSION_PROCESSES_H

#include <stdbool.h>
#include <stdint.h>

struct processes {
	uint32_t *pids;
	uint32_t nr;
	uint32_t nr_alive;
	int fd;			/* for poll(): readable when one has ended; -1: not watched */
};

void processes_init(struct processes *processes);

/* Parses "12,34". Returns 0, or CLI_IMPOSSIBLE after a message. */
int processes_parse(struct processes *processes, const char *text);

/* Starts to watch. Returns 0, or CLI_IMPOSSIBLE after a message if a process does not exist. */
int processes_watch(struct processes *processes);

/* Have all of them ended? Doesn't wait. */
bool processes_have_ended(struct processes *processes);

void processes_close(struct processes *processes);

#endif
