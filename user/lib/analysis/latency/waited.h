/* SPDX-License-Identifier: MIT */
#ifndef KB_LIB_ANALYSIS_LATENCY_WAITED_H
#define KB_LIB_ANALYSIS_LATENCY_WAITED_H

#include <kbarman/waits.h>

/* Whether the number of an object of this kind says which one it is. */
bool kb_waited_has_identity(uint8_t object);

/*
 * What @task_id, whose wait begins at @ticks, waits for by @object: the members of the row that say what it is. A fault
 * has its address. The trace has names already.
 */
struct kb_waits_row kb_waited(struct kb_trace *trace, const struct kb_object *object, uint32_t task_id, uint64_t ticks);

#endif
