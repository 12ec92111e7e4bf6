/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef KBARMAN_COMPAT_WORKQUEUE_H
#define KBARMAN_COMPAT_WORKQUEUE_H

#include <linux/workqueue.h>

/* The system's queue whose workers run on any CPU. */
#ifdef KBARMAN_HAVE_WORKQUEUE_DFL
#define kbarman_unbound_wq	system_dfl_wq
#else
#define kbarman_unbound_wq	system_unbound_wq
#endif

#endif /* KBARMAN_COMPAT_WORKQUEUE_H */
