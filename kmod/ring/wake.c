// SPDX-License-Identifier: GPL-2.0-only
#include <linux/kernel.h>

#include "ring/wake.h"

static void wake_pollers(struct irq_work *work)
{
	struct kbarman_wake *wake = container_of(work, struct kbarman_wake, work);

	wake_up_interruptible_all(&wake->pollers);
}

void kbarman_wake_init(struct kbarman_wake *wake)
{
	init_irq_work(&wake->work, wake_pollers);
	init_waitqueue_head(&wake->pollers);
}

void kbarman_wake_arm(struct kbarman_wake *wake, struct file *file, struct poll_table_struct *wait)
{
	kbarman_wake_watch(wake, file, wait);
	/*
	 * Set the flag before the caller reads the offsets. Pairs with smp_mb() in
	 * kbarman_wake_soon().
	 */
	smp_store_mb(wake->armed, 1);
}
