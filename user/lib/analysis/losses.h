/* SPDX-License-Identifier: MIT */
/*
 * What is not in a capture, as far as the capture itself says: the facts
 * kbarman.lost.CPU.REASON, kbarman.overwritten.CPU and kbarman.missed.WHAT. And what its counters
 * did not count: kbarman.stopped.CPU.REASON.
 */
#ifndef KB_LIB_ANALYSIS_LOSSES_H
#define KB_LIB_ANALYSIS_LOSSES_H

#include <stdbool.h>
#include <stdint.h>

#include <kbarman/barman.h>

struct kb_loss {
	uint32_t core;		/* of lost records and overwritten ones */
	char what[24];		/* the reason, or what was missed */
	uint64_t count;
};

struct kb_losses {
	bool stated;		/* the capture has such facts, 0 losses included */
	uint64_t written;	/* records, by all CPUs */
	uint64_t overwritten;	/* of them, in overwrite mode: no losses */
	uint64_t lost;		/* records */
	struct kb_loss *rows;	/* of `lost`, by core and reason */
	uint32_t nr_rows;
	struct kb_loss *missed;	/* facts that did not get into a table, by name */
	uint32_t nr_missed;
	struct kb_loss *stopped; /* times that the first counter stood still, as `rows` */
	uint32_t nr_stopped;
};

/* 0 or -ENOMEM. */
int kb_losses_read(struct kb_losses *losses, const struct kb_barman *barman);
void kb_losses_release(struct kb_losses *losses);

/* What to do against a loss or miss, a clause in the imperative; never NULL. */
const char *kb_loss_advice(const char *what);

#endif
