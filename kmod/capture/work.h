/* SPDX-License-Identifier: GPL-2.0-only */
/* The queue of the module's long jobs, so that nobody else waits behind them. */
#ifndef KBARMAN_WORK_H
#define KBARMAN_WORK_H

#include <linux/workqueue.h>

extern struct workqueue_struct *kbarman_wq;	/* its workers run on any CPU */

/* 0 or -ENOMEM. Context: module init and exit; nothing is queued at the exit. */
int kbarman_work_init(void);
void kbarman_work_exit(void);

#endif /* KBARMAN_WORK_H */
