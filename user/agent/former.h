/* SPDX-License-Identifier: MIT */
/*
 * What was recorded before this boot into memory that survives a reset (KBARMAN_FORMER). `kbarman recover` makes a capture
 * of it, in a process of its own: the agent decodes nothing, and serves its sessions meanwhile. The memory is released when
 * the disk has the capture. Until then, whatever fails, it stays, and the next agent tries again.
 */
#ifndef KB_AGENT_FORMER_H
#define KB_AGENT_FORMER_H

#include <limits.h>
#include <sys/types.h>

#include <kbarman/device.h>

#include "agent/config.h"
#include "agent/folder.h"

struct agent_former {			/* zeroed: there is nothing to do */
	struct agent_folder *folder;
	char crashes[AGENT_NAME_MAX];	/* the session whose moments they are; "": none's */
	struct kb_device *device;	/* NULL: all is done */
	struct kbarman_former its;	/* the one that is being recovered */
	const char *session;		/* it goes to */
	char name[NAME_MAX + 1];	/* of the file */
	pid_t pid;			/* of the process; 0: none runs */
	char trouble[256];		/* why one stays; "": none does */
};

/* Begins. */
void agent_former_begin(struct agent_former *former, struct agent_folder *folder);

/* A process has ended. Returns whether the session `crashes` got a capture. */
bool agent_former_ended(struct agent_former *former);

/* Gives up what is not done. */
void agent_former_end(struct agent_former *former);

#endif
