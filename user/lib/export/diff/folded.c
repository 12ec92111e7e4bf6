// SPDX-License-Identifier: MIT
/*
 * Folded stacks with two weights, the input of tools for differential flame graphs: one line for
 * each chain, "task;outermost;...;innermost NS_OF_A NS_OF_B".
 */
#include <errno.h>
#include <stdlib.h>

#include "export/diff/write.h"
#include "export/viewers/folded_label.h"

int kb_diff_write_folded(const struct kb_diff *diff, const struct kb_diff_write_options *options,
			 struct kb_out *out)
{
	const struct kb_diff_node **path = calloc((size_t)kb_diff_depth(diff) + 1, sizeof(*path));
	char label[KB_DIFF_LABEL];

	if (!path)
		return -ENOMEM;
	for (uint32_t i = 0; i < diff->nr_nodes; i++) {
		const struct kb_diff_node *node = &diff->nodes[diff->order[i]];
		const double *self = kb_diff_self(node, options);

		path[node->depth] = node;
		if (!(self[0] > 0) && !(self[1] > 0))
			continue;
		for (uint32_t depth = 1; depth <= node->depth; depth++) {
			if (depth > 1)
				kb_out_bytes(out, ";", 1);
			kb_diff_label(label, path[depth]->name, path[depth]->image);
			kb_folded_label(out, label, path[depth]->kernel, false);
		}
		kb_out_printf(out, " %llu %llu\n", (unsigned long long)kb_diff_ns(self[0]),
			      (unsigned long long)kb_diff_ns(self[1]));
	}
	free(path);
	return 0;
}
