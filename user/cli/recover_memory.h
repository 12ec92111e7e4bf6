/* SPDX-License-Identifier: MIT */
/* kbarman recover of a memory dump: captures of the machine's sessions, out of its memory. */
#ifndef KBARMAN_CLI_RECOVER_MEMORY_H
#define KBARMAN_CLI_RECOVER_MEMORY_H

#include <stdint.h>

struct recover_memory {
	const char *file;
	uint64_t base;		/* of raw memory; KB_DUMPS_NO_BASE */
	uint64_t session;	/* the only one that is wanted; 0: all */
	const char *output;	/* NULL: FILE.SESSION.cap */
};

/* Returns an exit status. */
int recover_memory(const struct recover_memory *how);

#endif
