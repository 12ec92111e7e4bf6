/* SPDX-License-Identifier: MIT */
/* The recording that began when the module was loaded (KBARMAN_ADOPT). */
#ifndef KB_AGENT_BOOT_H
#define KB_AGENT_BOOT_H

#include "agent/folder.h"

/*
 * Ends that recording, if there is one and nobody has it, and writes what it has as a capture of the
 * session since_boot. Call it when the sessions of the agent run: then no time is missing.
 */
void agent_boot_take(struct agent_folder *folder);

#endif
