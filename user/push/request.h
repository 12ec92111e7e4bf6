/* SPDX-License-Identifier: MIT */
/*
 * push/: kbarman-push: a process that encodes captures (encode.h), sending (send.h, http.h), what
 * could not be sent (spool.h), and metrics for Prometheus (metrics_show.h).
 *
 * What the parts of `kbarman push` pass to each other.
 */
#ifndef KBARMAN_PUSH_REQUEST_H
#define KBARMAN_PUSH_REQUEST_H

#include <stddef.h>
#include <stdint.h>

#define PUSH_BYTES_MAX	(256U << 20)	/* of a request */
#define PUSH_STATUS_KEPT	3	/* exit status: what was not sent is in the spool, and nothing is lost */

/* What a request holds. The time of pprof's waits is not known: 0. */
struct push_counts {
	uint64_t samples, waits, wait_ns, profiles;
	uint64_t from, until;		/* ns since 1970 */
};

struct push_request {
	struct push_counts counts;
	void *data;			/* the body, to be freed */
	size_t size;
};

/* Sums of requests that had one fate. */
struct push_sum {
	uint64_t requests, samples, waits;
};

static inline void push_count(struct push_sum *sum, const struct push_counts *counts)
{
	sum->requests++;
	sum->samples += counts->samples;
	sum->waits += counts->waits;
}

#endif
