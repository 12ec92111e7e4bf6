/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Rows of tables come back, in a session that overwrites: a flight recorder runs for a year.
 *
 * A row whose time is over (the task is gone or has another name, the mapping has been
 * replaced) is needed as long as a ring holds a record of that task from that time. When a
 * table has become emptier by half, a worker reads every ring, of whatever CPU, notes the
 * rows that are needed, and empties the others. So a CPU that is offline or idle keeps the
 * rows of its own records, and no more.
 *
 * Records that come meanwhile need no row whose time was over before it began to read.
 */
#ifndef KBARMAN_COLLECT_H
#define KBARMAN_COLLECT_H

#include <linux/types.h>

struct kbarman_capture;
struct kbarman_layout;

/* The bytes that a collector takes. */
u64 kbarman_collect_memory(const struct kbarman_layout *layout);

bool kbarman_collect_create(struct kbarman_capture *capture);
void kbarman_collect_free(struct kbarman_capture *capture);

/* From start() until stop() returns rows may come back. Context: task. */
void kbarman_collect_start(struct kbarman_capture *capture);
void kbarman_collect_stop(struct kbarman_capture *capture);

/* There is little room left in a table. Context: any; under the capture's lock. */
void kbarman_collect_soon(struct kbarman_capture *capture);

#endif /* KBARMAN_COLLECT_H */
