/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Waking the pollers of a session. Probes run under the scheduler's locks, so they can't wake a
 * task. A poller sets a flag. The first probe that sees the flag clears it and queues an irq_work,
 * which wakes the pollers. A plain irq_work runs in a thread on PREEMPT_RT.
 */
#ifndef KBARMAN_WAKE_H
#define KBARMAN_WAKE_H

#include <linux/atomic.h>
#include <linux/irq_work.h>
#include <linux/poll.h>
#include <linux/wait.h>

struct kbarman_wake {
	int armed;		/* 1 from the registration of a poller until the next wake-up */
	struct irq_work work;
	wait_queue_head_t pollers;
};

void kbarman_wake_init(struct kbarman_wake *wake);

/* Called once for each page of a ring. Context: any, NMI included. */
static inline void kbarman_wake_soon(struct kbarman_wake *wake)
{
	/*
	 * The data must be visible before the flag is read. Pairs with smp_store_mb() in
	 * kbarman_wake_arm(), after which the poller reads the offsets.
	 */
	smp_mb();
	if (READ_ONCE(wake->armed) && xchg(&wake->armed, 0))
		irq_work_queue(&wake->work);
}

/* Register a poller, which is woken together with others. Context: task. */
static inline void kbarman_wake_watch(struct kbarman_wake *wake, struct file *file,
				      struct poll_table_struct *wait)
{
	poll_wait(file, &wake->pollers, wait);
}

/*
 * Register a poller that wants to be woken; @wait is NULL if the poller is registered. The caller
 * checks the rings after this call. Context: task.
 */
void kbarman_wake_arm(struct kbarman_wake *wake, struct file *file, struct poll_table_struct *wait);

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
