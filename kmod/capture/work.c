// SPDX-License-Identifier: GPL-2.0-only
#include <linux/errno.h>
#include <linux/init.h>

#include "capture/work.h"

struct workqueue_struct *kbarman_wq;

int __init kbarman_work_init(void)
{
	kbarman_wq = alloc_workqueue("kbarman", WQ_UNBOUND, 0);
	return kbarman_wq ? 0 : -ENOMEM;
}

void kbarman_work_exit(void)
{
	destroy_workqueue(kbarman_wq);
}
