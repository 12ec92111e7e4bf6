/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Marks: what programs write about themselves. One kbarman_marker stands for one
 * descriptor that may write marks only. All of a user's have one rate together.
 */
#ifndef KBARMAN_SOURCE_MARKER_H
#define KBARMAN_SOURCE_MARKER_H

#include <linux/types.h>
#include <linux/uio.h>

#include "uapi/kbarman.h"

struct cred;

struct kbarman_marker {
	u32 user;		/* as kbarman_user_of() tells them */
	struct account *account;	/* the user's */
};

int kbarman_marker_init(void);
void kbarman_marker_exit(void);

/* For a descriptor opened with @cred; NULL: no memory. Context: task. */
struct kbarman_marker *kbarman_marker_open(const struct cred *cred);
void kbarman_marker_close(struct kbarman_marker *marker);

/* May @marker do one thing more at its rate? If so, it has. */
bool kbarman_marker_may(struct kbarman_marker *marker);

/*
 * write(): bytes taken, or -errno as the UAPI header says. @marker NULL: at any rate.
 * Context: task.
 */
ssize_t kbarman_marker_write(struct kbarman_marker *marker, struct iov_iter *from);

/* The ioctls, with fields that must be 0 checked. @marker NULL: who may record asks. */
int kbarman_marker_series(const struct kbarman_marker *marker, struct kbarman_mark_series *series);
int kbarman_marker_state(void);	/* a descriptor */

#endif /* KBARMAN_SOURCE_MARKER_H */
