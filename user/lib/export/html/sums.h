/* SPDX-License-Identifier: MIT */
/*
 * What tasks did in a part of the capture: exact sums for the tables and the flame graph of a page
 * that does not have all records at hand.
 */
#ifndef KB_LIB_EXPORT_HTML_SUMS_H
#define KB_LIB_EXPORT_HTML_SUMS_H

#include "base/io/out_packet.h"
#include "base/table.h"

struct kb_html_sums {
	struct kb_table tasks;		/* what ran */
	struct kb_table samples;	/* of a task in a node of the call tree */
	uint64_t idle, lost;		/* ns: of halts, of lost records */
};

void kb_html_sums_init(struct kb_html_sums *sums);
void kb_html_sums_release(struct kb_html_sums *sums);

/* A task ran for @ns; @how: 1 preempted, 2 blocked, 0 otherwise. False: no memory. */
bool kb_html_sums_run(struct kb_html_sums *sums, uint32_t task, uint64_t ns, unsigned int how);
/* @weight as in the page: + 1, 0 = none. */
bool kb_html_sums_sample(struct kb_html_sums *sums, uint32_t task, uint32_t node, uint64_t weight);

bool kb_html_sums_add(struct kb_html_sums *sums, const struct kb_html_sums *more);

/*
 * Write varints: idle, lost; the number of tasks and for each of them task, ns, runs, preempted, blocked;
 * then up to the end task, node, samples, samples without a weight, weight of the others.
 */
void kb_html_sums_put(const struct kb_html_sums *sums, struct kb_out *out);

#endif
