/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Marks: what programs write about themselves. One kbarman_marker stands for one
 * descriptor that may write marks only, and has the rate it may do so at.
 */
#ifndef KBARMAN_SOURCE_MARKER_H
#define KBARMAN_SOURCE_MARKER_H

#include <linux/atomic.h>
#include <linux/types.h>
#include <linux/uio.h>

#include "uapi/kbarman.h"

struct kbarman_marker {
	atomic64_t paid;	/* ns of ktime: what was written is paid for up to then */
};

int kbarman_marker_init(void);
void kbarman_marker_exit(void);

/* May @marker do one thing more at its rate? If so, it has. */
bool kbarman_marker_may(struct kbarman_marker *marker);

/*
 * write(): bytes taken, or -errno as the UAPI header says. @marker NULL: at any rate.
 * Context: task.
 */
ssize_t kbarman_marker_write(struct kbarman_marker *marker, struct iov_iter *from);

/* The ioctls, with fields that must be 0 checked. */
int kbarman_marker_series(struct kbarman_mark_series *series);
int kbarman_marker_state(void);	/* a descriptor */

#endif /* KBARMAN_SOURCE_MARKER_H */
