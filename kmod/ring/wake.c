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

bool kbarman_wake_is_due(struct kbarman_wake *wake, unsigned int pages)
{
	unsigned int left = READ_ONCE(wake->pages), seen;

	for (; left; left = seen) {
		seen = cmpxchg(&wake->pages, left, left - min(left, pages));
		if (seen == left)
			return left <= pages;
	}
	return false;
}

/* Wake somebody after @pages, or before that if somebody else waits for less. */
static void wake_after(struct kbarman_wake *wake, unsigned int pages)
{
	unsigned int left = READ_ONCE(wake->pages), seen;

	for (; !left || left > pages; left = seen) {
		seen = cmpxchg(&wake->pages, left, pages);
		if (seen == left)
			break;
	}
	/* Before the caller reads the offsets. Pairs with smp_mb() in kbarman_wake_soon(). */
	smp_mb();
}

unsigned int kbarman_wake_arm(struct kbarman_wake *wake, struct file *file, struct poll_table_struct *wait,
			      unsigned int (*left)(void *context), void *context)
{
	unsigned int pages = left(context), most;

	kbarman_wake_watch(wake, file, wait);
	/* What was written before it is armed does not count for it: so look again, until that was nothing. */
	do {
		most = max(pages, 1U);
		wake_after(wake, most);
		pages = left(context);
	} while (pages && pages < most);
	return pages;
}
