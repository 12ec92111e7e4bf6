/* SPDX-License-Identifier: MIT */
/* Common code of the exports of call chains: reads a capture into a tree. */
#ifndef KB_LIB_EXPORT_WEIGHED_CALLS_H
#define KB_LIB_EXPORT_WEIGHED_CALLS_H

#include <kbarman/export.h>

#include "analysis/samples/calltree.h"
#include "analysis/samples/offcpu.h"

/* The variants of these exports, which have one extension. */
#define KB_WEIGHED_CALLS_FORMATS(extension)	\
	{ "weight", extension, "samples", extension, "offcpu", extension, NULL }

struct kb_weighed_calls {
	const struct kb_calltree_node *nodes;
	const uint32_t *order;		/* depth first */
	uint32_t nr;
	uint64_t samples;		/* or number of waits, if `times` */
	bool times;			/* weights are nanoseconds of waiting */
	struct kb_text unit;		/* unit of the weights unless `times` */

	/* Owners of the data above. */
	struct kb_calltree *tree;	/* NULL: offcpu has the tree */
	struct kb_sched *sched;
	struct kb_offcpu *offcpu;
};

/*
 * Read all samples of @trace. Their weight is options->event, or with variant "samples" 1.
 * With variant "offcpu" read all waits; their weight is their duration. Returns 0 or a negative
 * errno and @err. Call kb_weighed_calls_release() in any case.
 */
int kb_weighed_calls_read(struct kb_weighed_calls *stacks, struct kb_trace *trace,
			  const struct kb_export_options *options, struct kb_error *err);
void kb_weighed_calls_release(struct kb_weighed_calls *stacks);

#endif
