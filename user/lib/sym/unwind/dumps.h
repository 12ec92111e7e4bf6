/* SPDX-License-Identifier: MIT */
/*
 * Unwind rows of code that processes make while they are recorded, from their jitdumps. A process
 * goes on writing its dump, so a thread reads what was added whenever a stack needs it. Code comes
 * into force in the order of the dump as time goes on.
 */
#ifndef KB_LIB_SYM_UNWIND_DUMPS_H
#define KB_LIB_SYM_UNWIND_DUMPS_H

#include <stdbool.h>
#include <stdint.h>

#include "sym/unwind/place.h"
#include "unwind/rows.h"

struct kb_unwind_dumps;

/* Returns 0 or -ENOMEM. The thread begins with the first dump. */
int kb_unwind_dumps_create(struct kb_unwind_dumps **out);
void kb_unwind_dumps_destroy(struct kb_unwind_dumps *dumps);

/*
 * From now on @task has the dump mapped at @place, which is copied. @key is the same for all places
 * of a file, and for no other file. Returns 0 or a negative errno.
 */
int kb_unwind_dumps_map(struct kb_unwind_dumps *dumps, uint32_t task, uint64_t key,
			const struct kb_unwind_place *place);

/*
 * The rows of the code that @task has at @address at @time (CLOCK_MONOTONIC, in ns), and in *@bias
 * what is added to their addresses. NULL: there are none, or not yet. *@waits: not yet. Rows stay
 * until kb_unwind_dumps_destroy().
 */
const struct kb_unwind_rows *kb_unwind_dumps_find(struct kb_unwind_dumps *dumps, uint32_t task,
						  uint64_t address, uint64_t time, uint64_t *bias,
						  bool *waits);

/* Wait until the thread has read what it was asked for. */
void kb_unwind_dumps_wait(struct kb_unwind_dumps *dumps);

#endif
