/* SPDX-License-Identifier: MIT */
/* For kmod/wake.c in user space: the test is told who would be woken. */
struct wait_queue {
	char unused;
};

#define DECLARE_WAIT_QUEUE_HEAD(name)	struct wait_queue name

void wake_up_interruptible_all(struct wait_queue *queue);
