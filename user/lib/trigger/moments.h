/* SPDX-License-Identifier: MIT */
/*
 * What fired, on its way into captures: which moments share a capture, which came too soon after one,
 * and when a capture is due. It knows nothing of records.
 */
#ifndef KB_LIB_TRIGGER_MOMENTS_H
#define KB_LIB_TRIGGER_MOMENTS_H

#include <kbarman/trigger.h>

#define KB_MOMENTS_MAX	32U	/* of a capture that are told one by one */

struct kb_moments {
	uint64_t after_ns, every_ns;
	struct kb_fired rows[KB_MOMENTS_MAX];	/* of the capture that is being waited for */
	uint32_t nr;			/* of these */
	uint64_t further;		/* moments of this capture that have no row */
	struct kb_fired *waiting;	/* behind its end */
	uint32_t nr_waiting, room;
	bool has_last;			/* there was a capture, written or not: */
	int64_t last;			/* ns: when its first moment was */
	uint64_t suppressed_since;	/* moments, since that capture */
	struct kb_watch_totals totals;	/* fired, kept, suppressed, failed, captures */
};

void kb_moments_init(struct kb_moments *moments, uint64_t after_ns, uint64_t every_ns);
void kb_moments_release(struct kb_moments *moments);

/* A moment. Returns 1 if a capture begins with it, 0, or -ENOMEM: it is counted as failed. */
int kb_moments_add(struct kb_moments *moments, const struct kb_fired *fired);

/* @nr moments were found that nothing is known of: they were too many at once. */
void kb_moments_add_unknown(struct kb_moments *moments, uint64_t nr);

/* ns: when the capture has to be written; false: nothing fired. */
bool kb_moments_due(const struct kb_moments *moments, int64_t *ns);

/* The capture was written, or was not. Returns 1 if another one has begun, else 0. */
int kb_moments_done(struct kb_moments *moments, bool written);

#endif
