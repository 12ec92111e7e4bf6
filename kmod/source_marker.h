/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Marks: annotations and values that programs write. A kbarman_marker belongs to one descriptor
 * that can only write marks. All descriptors of a user share one rate.
 */
#ifndef KBARMAN_SOURCE_MARKER_H
#define KBARMAN_SOURCE_MARKER_H

#include <linux/types.h>
#include <linux/uio.h>

#include "uapi/kbarman.h"

struct cred;

struct kbarman_marker {
	u32 user;		/* number of the user, from kbarman_user_of() */
	struct account *account;	/* rate of the user */
};

int kbarman_marker_init(void);
void kbarman_marker_exit(void);

/*
 * For a descriptor that was opened with @cred. Returns NULL if there is no memory. Context: task.
 */
struct kbarman_marker *kbarman_marker_open(const struct cred *cred);
void kbarman_marker_close(struct kbarman_marker *marker);

/*
 * True if the rate of @marker's user allows one more call. The call is then charged. Context: task.
 */
bool kbarman_marker_may(struct kbarman_marker *marker);

/*
 * write(): returns the bytes taken, or -errno as the UAPI header says. @marker is NULL for a
 * descriptor that may record; such a descriptor has no rate. Context: task.
 */
ssize_t kbarman_marker_write(struct kbarman_marker *marker, struct iov_iter *from);

/*
 * The ioctls. The caller has checked that reserved fields are 0. @marker is NULL for a descriptor
 * that may record.
 */
int kbarman_marker_series(const struct kbarman_marker *marker, struct kbarman_mark_series *series);
int kbarman_marker_state(void);	/* returns a descriptor */

#endif /* KBARMAN_SOURCE_MARKER_H */
