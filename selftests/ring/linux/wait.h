/* SPDX-License-Identifier: MIT */
/* For kmod/ring/wake.h in user space: the test is told who would be woken. */
#ifndef RING_LINUX_WAIT_H
#define RING_LINUX_WAIT_H

typedef struct {
	char unused;
} wait_queue_head_t;

#define init_waitqueue_head(queue)	((void)(queue))

void wake_up_interruptible_all(wait_queue_head_t *queue);

#endif
