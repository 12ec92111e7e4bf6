/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Waking pollers. Probes run under the scheduler's locks, so they can't wake a task. A poller sets
 * a flag. The first probe that sees the flag clears it and queues an irq_work, which wakes the
 * pollers. A plain irq_work runs in a thread on PREEMPT_RT.
 */
#ifndef KBARMAN_WAKE_H
#define KBARMAN_WAKE_H

#include <linux/atomic.h>
#include <linux/irq_work.h>
#include <linux/poll.h>

/* 1 from the registration of a poller until the next wake-up. */
extern int kbarman_wake_armed;
extern struct irq_work kbarman_wake_work;

/* Called once for each page of a ring. Context: any, NMI included. */
static inline void kbarman_wake(void)
{
	/*
	 * The data must be visible before the flag is read. Pairs with smp_store_mb() in
	 * kbarman_wake_arm(), after which the poller reads the offsets.
	 */
	smp_mb();
	if (READ_ONCE(kbarman_wake_armed) && xchg(&kbarman_wake_armed, 0))
		irq_work_queue(&kbarman_wake_work);
}

/* Register a poller. The caller checks the rings after this call. Context: task. */
void kbarman_wake_arm(struct file *file, struct poll_table_struct *wait);

/* Wake all pollers now. Context: task. */
void kbarman_wake_all(void);

/* Wait until no wake-up is under way. No probe may be attached. Context: task. */
void kbarman_wake_sync(void);

#endif /* KBARMAN_WAKE_H */
