/* SPDX-License-Identifier: MIT */
/*
 * What a capture lacks according to its own facts: kbarman.lost.CPU.REASON,
 * kbarman.overwritten.CPU and kbarman.missed.WHAT. And what its counters did not count:
 * kbarman.stopped.CPU.REASON.
 */
#ifndef KBARMAN_LOSSES_H
#define KBARMAN_LOSSES_H

#include <stdbool.h>
#include <stdint.h>

#include <kbarman/trace.h>

#ifdef __cplusplus
extern "C" {
#endif

struct kb_loss {
	uint32_t core;		/* of lost and overwritten records */
	char what[24];		/* the reason, or what was missed; printable */
	uint64_t count;
};

struct kb_losses {
	bool stated;		/* the capture has such facts, even if nothing is lost */
	uint64_t written;	/* records, by all CPUs */
	uint64_t overwritten;	/* overwritten in overwrite mode; these are not lost */
	uint64_t lost;		/* records */
	struct kb_loss *rows;	/* parts of `lost`, by core and reason */
	uint32_t nr_rows;
	struct kb_loss *missed;	/* facts that found no room in a table, by name */
	uint32_t nr_missed;
	struct kb_loss *stopped; /* how often the first counter stopped; as `rows` */
	uint32_t nr_stopped;
};

/* The losses of @trace, which owns them. NULL and @err without memory. */
const struct kb_losses *kb_trace_losses(struct kb_trace *trace, struct kb_error *err);

/* The name of a reason as in the facts; NULL behind the last one. */
const char *kb_loss_name(unsigned int loss);	/* enum kbarman_loss */
const char *kb_miss_name(unsigned int miss);	/* enum kbarman_miss */

/* What to do about a loss or a miss, by its `what`: a clause in the imperative, never NULL. */
const char *kb_loss_advice(const char *what);

#ifdef __cplusplus
}
#endif

#endif
