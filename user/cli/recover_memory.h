/* SPDX-License-Identifier: MIT */
/*
 * kbarman recover of memory: captures of a machine's sessions, out of a dump, or out of the memory of this machine that
 * survived its last boot.
 */
#ifndef KBARMAN_CLI_RECOVER_MEMORY_H
#define KBARMAN_CLI_RECOVER_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

#include <kbarman/device.h>

struct recover_memory {
	const char *file;
	uint64_t base;		/* of raw memory; KB_DUMPS_NO_BASE */
	uint64_t session;	/* the only one that is wanted; 0: all */
	const struct kbarman_former *former;	/* what is called `file`; NULL: open that */
	const char *output;	/* NULL: FILE.SESSION.cap */
};

/* Returns an exit status. */
int recover_memory(const struct recover_memory *how);

struct recover_previous {
	int number;		/* of the recording; -1: all */
	bool release;		/* the memory of what was recovered */
	const char *output;	/* NULL: previous-TIME.cap */
};

/* Returns an exit status. */
int recover_previous(const struct recover_previous *how);

#endif
