/* SPDX-License-Identifier: MIT */
/*
 * export/diff/: what differs between captures, as text, flame graph, page, pprof or speedscope.
 *
 * What the files of differences have in common.
 */
#ifndef KB_LIB_EXPORT_DIFF_WRITE_H
#define KB_LIB_EXPORT_DIFF_WRITE_H

#include <kbarman/diff_export.h>

#include "export/diff/label.h"

/* Each writes a file; they return what kb_diff_write() returns. */
int kb_diff_write_flamegraph(const struct kb_diff *diff,
			     const struct kb_diff_write_options *options, struct kb_out *out);
int kb_diff_write_html(const struct kb_diff *diff, const struct kb_diff_write_options *options,
		       struct kb_out *out);
int kb_diff_write_folded(const struct kb_diff *diff, const struct kb_diff_write_options *options,
			 struct kb_out *out);
int kb_diff_write_pprof(const struct kb_diff *diff, const struct kb_diff_write_options *options,
			struct kb_out *out);
int kb_diff_write_speedscope(const struct kb_diff *diff,
			     const struct kb_diff_write_options *options, struct kb_out *out);

/* A flame graph whose frames are as wide as in A, as in B, or as the mean of both. */
enum kb_diff_picture { KB_DIFF_PICTURE_A, KB_DIFF_PICTURE_B, KB_DIFF_PICTURE_BOTH };

int kb_diff_put_flamegraph(const struct kb_diff *diff, enum kb_diff_picture what,
			   const struct kb_diff_write_options *options, struct kb_out *out);

/* What is written of a node: of both sides, ns. */
static inline const double *kb_diff_self(const struct kb_diff_node *node,
					 const struct kb_diff_write_options *options)
{
	return options->waits ? node->wait : node->cpu;
}

static inline const double *kb_diff_total(const struct kb_diff_node *node,
					  const struct kb_diff_write_options *options)
{
	return options->waits ? node->wait_total : node->cpu_total;
}

/* A whole number of ns; the values of a hostile capture may be larger. */
static inline uint64_t kb_diff_ns(double ns)
{
	return ns > 0 && ns < 9e18 ? (uint64_t)(ns + 0.5) : 0;
}

/* The largest depth of a node. */
static inline uint32_t kb_diff_depth(const struct kb_diff *diff)
{
	uint32_t depth = 0;

	for (uint32_t i = 0; i < diff->nr_nodes; i++)
		if (diff->nodes[i].depth > depth)
			depth = diff->nodes[i].depth;
	return depth;
}

#endif
