/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Waking those that poll(). A probe may not: it runs under the scheduler's locks.
 * It takes the one flag that a poller set, once, and leaves the rest to irq_work,
 * the plain kind, which PREEMPT_RT runs in a thread.
 */
#ifndef KBARMAN_WAKE_H
#define KBARMAN_WAKE_H

#include <linux/atomic.h>
#include <linux/irq_work.h>
#include <linux/poll.h>

/* 1 while somebody polls and has not been woken yet. */
extern int kbarman_wake_armed;
extern struct irq_work kbarman_wake_work;

/* Called once for every page of a ring. Context: any, NMI included. */
static inline void kbarman_wake(void)
{
	/*
	 * What was written is to be seen before it is asked who waits: pairs with
	 * smp_store_mb() in kbarman_wake_arm(), behind which the poller looks.
	 */
	smp_mb();
	if (READ_ONCE(kbarman_wake_armed) && xchg(&kbarman_wake_armed, 0))
		irq_work_queue(&kbarman_wake_work);
}

/* A poller registers, and only then looks whether there is something for it. */
void kbarman_wake_arm(struct file *file, struct poll_table_struct *wait);

/* Wake all pollers now. Context: task. */
void kbarman_wake_all(void);

/* No wake-up is under way any more. The probes must be gone. */
void kbarman_wake_sync(void);

#endif /* KBARMAN_WAKE_H */
