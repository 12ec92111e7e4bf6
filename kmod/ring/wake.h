/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Waking the pollers of a session. Probes run under the scheduler's locks, so they can't wake a
 * task. A poller says how many pages of a ring are to be written before there is something for it. Probes count
 * those of all rings, and the one with the last page queues an irq_work, which wakes the pollers. A plain
 * irq_work runs in a thread on PREEMPT_RT.
 */
#ifndef KBARMAN_WAKE_H
#define KBARMAN_WAKE_H

#include <linux/atomic.h>
#include <linux/irq_work.h>
#include <linux/poll.h>
#include <linux/wait.h>

struct kbarman_wake {
	unsigned int pages;	/* to be written until the next wake-up. 0: nobody waits for it */
	struct irq_work work;
	wait_queue_head_t pollers;
};

void kbarman_wake_init(struct kbarman_wake *wake);

/* Count @pages. True if somebody is to be woken. Context: as kbarman_wake_soon(). */
bool kbarman_wake_is_due(struct kbarman_wake *wake, unsigned int pages);

/* Called when a ring has come to another page, or to so many @pages more. Context: any, NMI included. */
static inline void kbarman_wake_soon(struct kbarman_wake *wake, unsigned int pages)
{
	/*
	 * The data must be visible before the pages are counted. Pairs with the barrier in
	 * kbarman_wake_arm(), after which the poller reads the offsets.
	 */
	smp_mb();
	if (READ_ONCE(wake->pages) && kbarman_wake_is_due(wake, pages))
		irq_work_queue(&wake->work);
}

/* Register a poller, which is woken together with others. Context: task. */
static inline void kbarman_wake_watch(struct kbarman_wake *wake, struct file *file,
				      struct poll_table_struct *wait)
{
	poll_wait(file, &wake->pollers, wait);
}

/*
 * Register a poller that wants to be woken; @wait is NULL if the poller is registered. @left looks at the rings, and
 * says how many pages one of them takes at least until it has something for the poller: 0 if it has something now. The
 * poller may go to sleep if the last answer, which is returned, is not 0. Context: task.
 */
unsigned int kbarman_wake_arm(struct kbarman_wake *wake, struct file *file, struct poll_table_struct *wait,
			      unsigned int (*left)(void *context), void *context);

/* Wake all pollers now. Context: task. */
static inline void kbarman_wake_all(struct kbarman_wake *wake)
{
	wake_up_interruptible_all(&wake->pollers);
}

/* Wait until no wake-up is under way. No probe may be attached. Context: task. */
static inline void kbarman_wake_sync(struct kbarman_wake *wake)
{
	irq_work_sync(&wake->work);
}

#endif /* KBARMAN_WAKE_H */
