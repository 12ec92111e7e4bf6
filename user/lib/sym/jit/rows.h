/* SPDX-License-Identifier: MIT */
/*
 * Which process has which jitdump: a process that writes one maps it executable, and for nothing
 * else.
 */
#ifndef KB_LIB_SYM_JIT_ROWS_H
#define KB_LIB_SYM_JIT_ROWS_H

#include <stdbool.h>
#include <stdint.h>

#include <kbarman/barman.h>
#include <kbarman/tasks.h>

struct kb_jit_row {
	const struct kb_map *map;
	uint32_t tgid;
};

struct kb_jit_rows {
	struct kb_jit_row *rows;	/* by process and time */
	uint32_t nr, max;
};

/* Returns 0 or -ENOMEM. The capture of @header must stay open. */
int kb_jit_rows_init(struct kb_jit_rows *rows, const struct kb_header *header,
		     const struct kb_tasks *tasks);
void kb_jit_rows_release(struct kb_jit_rows *rows);

/*
 * The newest mapping of a jitdump of process @tgid that is not newer than @timestamp (ticks), else
 * the oldest one; NULL: it has none. *@only: it has no other one.
 */
const struct kb_map *kb_jit_rows_find(const struct kb_jit_rows *rows, uint32_t tgid,
				      uint64_t timestamp, bool *only);

#endif
