// SPDX-License-Identifier: GPL-2.0-only
#include <linux/wait.h>

#include "wake.h"

static DECLARE_WAIT_QUEUE_HEAD(pollers);

static void wake_pollers(struct irq_work *work)
{
	wake_up_interruptible_all(&pollers);
}

int kbarman_wake_armed;
DEFINE_IRQ_WORK(kbarman_wake_work, wake_pollers);

void kbarman_wake_arm(struct file *file, struct poll_table_struct *wait)
{
	poll_wait(file, &pollers, wait);
	/*
	 * Set the flag before the caller reads the offsets. Pairs with smp_mb() in kbarman_wake().
	 */
	smp_store_mb(kbarman_wake_armed, 1);
}

void kbarman_wake_all(void)
{
	wake_up_interruptible_all(&pollers);
}

void kbarman_wake_sync(void)
{
	irq_work_sync(&kbarman_wake_work);
}
