// SPDX-License-Identifier: GPL-2.0-only
/* 6.17 (128ea9f6ccfb) renamed system_unbound_wq, and 7.2 complains of its old name. */
#include <linux/workqueue.h>

struct workqueue_struct *compat(void);
struct workqueue_struct *compat(void)
{
	return system_dfl_wq;
}
