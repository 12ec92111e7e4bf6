/* SPDX-License-Identifier: MIT */
/* What the exports of call chains share: the reading of a capture into a tree. */
#ifndef KB_LIB_EXPORT_STACKS_H
#define KB_LIB_EXPORT_STACKS_H

#include "analysis/calltree.h"
#include "analysis/offcpu.h"
#include "export/export.h"

/* The variants of these exports, and the extension of all of them. */
#define KB_STACKS_FORMATS(extension)	\
	{ "weight", extension, "samples", extension, "offcpu", extension, NULL }

struct kb_stacks {
	const struct kb_calltree_node *nodes;
	const uint32_t *order;		/* depth first */
	uint32_t nr;
	uint64_t samples;		/* or waits, with times */
	bool times;			/* weights are nanoseconds of waiting */
	struct kb_text unit;		/* else they are so many of these */
	int damage;			/* what kb_barman_next() gave last */

	/* Whose all that is. */
	struct kb_calltree *tree;	/* NULL: it is that of offcpu */
	struct kb_names *names;
	struct kb_timeline *timeline;
	struct kb_sched *sched;
	struct kb_offcpu *offcpu;
};

/*
 * All samples of @barman, weighed by options->event or, with variant "samples", counted;
 * with variant "offcpu" all waits, by their time. 0 or a negative errno and @err.
 * kb_stacks_release() in any case.
 */
int kb_stacks_read(struct kb_stacks *stacks, struct kb_barman *barman,
		   struct kb_symbolizer *symbolizer, const struct kb_export_options *options,
		   struct kb_error *err);
void kb_stacks_release(struct kb_stacks *stacks);

#endif
