/* SPDX-License-Identifier: MIT */
/*
 * Rows of mappings for readers that know numbers of tasks alone, of a capture whose rows have numbers
 * of processes. A thread gets those of its process. Its number may have been that of another thread
 * or process before: then a row without a name comes first, which hides the rows of that one.
 */
#ifndef KB_LIB_EXPORT_ARM_BARMAN_ROWS_H
#define KB_LIB_EXPORT_ARM_BARMAN_ROWS_H

#include <kbarman/barman.h>
#include <kbarman/tasks.h>

#include "base/table.h"

#define KB_BARMAN_ROWS_MAX	(1U << 20)	/* as many as the library reads */

struct kb_barman_rows {
	struct kb_map *rows;
	uint32_t nr, max;
	uint64_t wanted;		/* as many as there would be without the limit */
};

/*
 * The rows of @header for each task of @sampled, whose rows have the number of a task as their key.
 * Returns 0, -ENOMEM, or -E2BIG: they are too many.
 */
int kb_barman_rows_make(struct kb_barman_rows *rows, const struct kb_header *header,
			const struct kb_tasks *tasks, const struct kb_table *sampled);
void kb_barman_rows_release(struct kb_barman_rows *rows);

#endif
