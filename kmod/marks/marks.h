/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * marks/: annotations and values that programs write into every session that records marks: the
 * write() of the device, the rate of each user (rate.h), and the series of programs (series.h).
 */
#ifndef KBARMAN_MARKS_H
#define KBARMAN_MARKS_H

#include <linux/types.h>
#include <linux/uio.h>

#include "source.h"
#include "uapi/kbarman.h"

struct kbarman_account;
struct kbarman_session;

extern const struct kbarman_source kbarman_source_marker;

/* Whose marks they are, and where they go. */
struct kbarman_marks {
	struct kbarman_account *account;	/* that pays for them; NULL: nobody does, as for a
						 * descriptor that may record */
	struct kbarman_session *only;	/* the session that gets them; NULL: every session that
					 * records marks. With a reference, and without account */
};

int kbarman_marks_init(void);
void kbarman_marks_exit(void);

/* write(): returns the bytes taken, or -errno as the UAPI header says. Context: task. */
ssize_t kbarman_marks_write(const struct kbarman_marks *marks, struct iov_iter *from);

/* The ioctls. The caller has checked that reserved fields are 0. */
int kbarman_marks_series(const struct kbarman_marks *marks, struct kbarman_mark_series *series);
int kbarman_marks_state(void);	/* returns a descriptor */

#endif /* KBARMAN_MARKS_H */
