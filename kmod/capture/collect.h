/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Rows of tables come back, in a session that overwrites, and in a stream that asks for it: a flight
 * recorder runs for a year, and so does an agent.
 *
 * A row is over when its task is gone or has another name, or its mapping has been replaced.
 * Such a row is needed as long as a ring holds a record of that task from that time. When half
 * of the rows that were left are taken, a worker looks: it reads every ring, notes the rows that
 * are needed, and empties the others that are over. Records that come meanwhile need none of
 * those: the rows were over before the worker began to read.
 *
 * A ring may have room for records that need more rows than there are. So rings give way to
 * names. If what is over and needed takes more than half of the room that it and new rows share,
 * the rings that need most of it drop their oldest records, until it takes 3/8. A ring that needs
 * less than the others keeps all its records: that of a CPU which is idle or offline has few
 * tasks. Only the CPU of a ring that gives way is interrupted, for a moment; the worker itself
 * does the same for a CPU that is offline. The rings of a stream give no way: its reader takes what
 * they have, and new tasks find room then.
 *
 * The room is by user (shares.h) and resource: rows of tasks, rows of mappings, bytes of strings.
 */
#ifndef KBARMAN_COLLECT_H
#define KBARMAN_COLLECT_H

#include <linux/types.h>

struct kbarman_capture;
struct kbarman_layout;
struct kbarman_ring;

/* The bytes that a collector takes. */
u64 kbarman_collect_memory(const struct kbarman_layout *layout);

bool kbarman_collect_create(struct kbarman_capture *capture);
void kbarman_collect_free(struct kbarman_capture *capture);

/*
 * Rows may come back, until kbarman_collect_stop() returns. @rings: of the CPUs; their records say
 * which rows are needed. Context: task.
 */
void kbarman_collect_start(struct kbarman_capture *capture, struct kbarman_ring __percpu *rings);
void kbarman_collect_stop(struct kbarman_capture *capture);

#endif /* KBARMAN_COLLECT_H */
