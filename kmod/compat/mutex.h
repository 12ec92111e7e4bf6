/* SPDX-License-Identifier: GPL-2.0-only */
/* DEFINE_MUTEX() of Linux 5.10 with PREEMPT_RT needs rbtree.h: its header does not include it. */
#ifndef KBARMAN_COMPAT_MUTEX_H
#define KBARMAN_COMPAT_MUTEX_H

#include <linux/mutex.h>
#include <linux/rbtree.h>

#endif /* KBARMAN_COMPAT_MUTEX_H */
