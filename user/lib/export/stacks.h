/* SPDX-License-Identifier: MIT */
/* What the exports of call chains share: the reading of a capture into a tree. */
#ifndef KB_LIB_EXPORT_STACKS_H
#define KB_LIB_EXPORT_STACKS_H

#include "analysis/calltree.h"
#include "export/export.h"

struct kb_stacks {
	struct kb_calltree *tree;
	const struct kb_calltree_node *nodes;
	const uint32_t *order;		/* depth first */
	uint32_t nr;
	uint64_t samples;
	int damage;			/* what kb_barman_next() gave last */
};

/*
 * All samples of @barman; variant "samples" counts them. 0 or a negative errno and
 * @err. kb_stacks_release() in any case.
 */
int kb_stacks_read(struct kb_stacks *stacks, struct kb_barman *barman,
		   struct kb_symbolizer *symbolizer, const struct kb_export_options *options,
		   struct kb_error *err);
void kb_stacks_release(struct kb_stacks *stacks);

#endif
