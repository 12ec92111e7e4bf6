/* SPDX-License-Identifier: MIT */
/* The rows of a header's table by task and time. Both tables that have tasks are searched so. */
#ifndef KB_LIB_SYM_TASKS_ROW_ORDER_H
#define KB_LIB_SYM_TASKS_ROW_ORDER_H

#include <stdint.h>

/* What rows are ordered by. */
struct kb_row_place {
	uint64_t timestamp;
	uint32_t task_id;
	uint32_t index;			/* of the row in its table: the last criterion */
};

/* Sort @places by task, time and index. */
void kb_row_order(struct kb_row_place *places, uint32_t nr);

#endif
