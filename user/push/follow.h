/* SPDX-License-Identifier: MIT */
/*
 * Sends each capture of a folder once, as long as the process lives: what another program, such as
 * kbarmand, records there. Each capture is sent by a process of its own, so this one needs no library,
 * and what it has sent stands in a file of the spool.
 */
#ifndef KBARMAN_PUSH_FOLLOW_H
#define KBARMAN_PUSH_FOLLOW_H

#include <stdbool.h>

struct push_follow {
	const char *folder;		/* a file there whose name ends in .cap is whole */
	const char *spool;
	/*
	 * Is called in a process of its own, whose exit status it returns. @file: a capture; NULL: only
	 * what is in the spool. @patient: the server is worth waiting for.
	 */
	int (*send)(void *context, const char *file, bool patient);
	void *context;
};

/* Goes on until a signal comes. Returns an exit status. */
int push_follow(const struct push_follow *follow);

#endif
