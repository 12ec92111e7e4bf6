/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef KBARMAN_SOURCE_SCHED_H
#define KBARMAN_SOURCE_SCHED_H

struct kbarman_capture;

/* Write the fact that says what prev_state of a task switch means. */
void kbarman_sched_tell_states(struct kbarman_capture *capture);

#endif /* KBARMAN_SOURCE_SCHED_H */
