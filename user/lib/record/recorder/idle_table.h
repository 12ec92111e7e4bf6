/* SPDX-License-Identifier: MIT */
/* The idle states that sysfs has for each CPU. */
#ifndef KB_LIB_RECORD_RECORDER_IDLE_TABLE_H
#define KB_LIB_RECORD_RECORDER_IDLE_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#define KB_IDLE_TABLE_NAME	32	/* bytes of a name, with the NUL */

struct kb_idle_row {
	uint32_t residency;		/* us that a halt has to last for the state to pay */
	uint32_t latency;		/* us that it takes to leave the state, at most */
	bool disabled;			/* by the user or the driver */
	char name[KB_IDLE_TABLE_NAME];
};

/*
 * Call @take for the states of CPU 0, and for those of the CPUs below @nr_cpus that differ from
 * the state of CPU 0; a state that such a CPU lacks is a disabled one. @sys: the folder with a
 * folder for each CPU, NULL for that of sysfs. Returns 0, or the first value of @take that is not
 * 0. A machine whose states can't be read has none.
 */
int kb_idle_table_read(const char *sys, uint32_t nr_cpus,
		       int (*take)(void *context, uint32_t cpu, uint32_t state,
				   const struct kb_idle_row *row),
		       void *context);

#endif
