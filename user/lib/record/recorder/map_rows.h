/* SPDX-License-Identifier: MIT */
/*
 * The mappings of a session that is being recorded, and which process each thread belongs to. A row
 * holds from its time on, and the kernel may write it later than a row that is newer.
 */
#ifndef KB_LIB_RECORD_RECORDER_MAP_ROWS_H
#define KB_LIB_RECORD_RECORDER_MAP_ROWS_H

#include <kbarman/device.h>

#include "base/table.h"
#include "sym/unwind/stacks.h"

struct kb_mounts;

struct kb_map_rows {
	struct kb_map_row {
		uint64_t timestamp;
		uint32_t row;		/* of the mmap table, */
		bool is_task;		/* or of the task table */
	} *rows;			/* by time; those before `next` are in force */
	uint32_t next, nr, max, seen_maps, seen_tasks;
	struct kb_table processes;	/* by thread */
};

void kb_map_rows_init(struct kb_map_rows *rows);

/* Take the rows that the kernel has written since the last call. Returns 0 or -ENOMEM. */
int kb_map_rows_look(struct kb_map_rows *rows, const struct kb_mapped *mapped);

/* Put the rows up to @timestamp in force for @stacks. Returns 0 or a negative errno. */
int kb_map_rows_until(struct kb_map_rows *rows, const struct kb_mapped *mapped,
		      struct kb_mounts *mounts, struct kb_stacks *stacks, uint64_t timestamp);

/* The process of @task; @task itself if that is not known. */
uint32_t kb_map_rows_process(const struct kb_map_rows *rows, uint32_t task);

void kb_map_rows_release(struct kb_map_rows *rows);

#endif
