/* SPDX-License-Identifier: MIT */
/* The tables that are made while records are read. */
#ifndef KB_LIB_QUERY_WALKS_H
#define KB_LIB_QUERY_WALKS_H

#include "query/query_inside.h"
#include "query/query_walk.h"

extern const struct query_table query_records, query_switches, query_marks, query_series;
extern const struct query_table query_samples, query_counters, query_frames;
extern const struct query_table query_slices, query_waits;
extern const struct query_table query_wakeups, query_migrations, query_details;
extern const struct query_table query_interrupts, query_delays, query_syscalls, query_faults, query_block;

/*
 * What @pc of @task_id means. NULL: names are not to be had. The result holds until the next call.
 */
const struct kb_frame *query_look_up(const struct query_walk *walk, uint32_t task_id, uint64_t pc);

/* Put what a switch or a wakeup says of an object: column @i of object, call, object_id and so on. */
void query_put_object(struct query_walk *walk, struct sqlite3_context *context, int i);

#endif
