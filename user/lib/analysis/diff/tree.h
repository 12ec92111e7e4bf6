/* SPDX-License-Identifier: MIT */
/* The call chains of both sides as one tree. */
#ifndef KB_LIB_ANALYSIS_DIFF_TREE_H
#define KB_LIB_ANALYSIS_DIFF_TREE_H

#include "analysis/diff/table.h"

/*
 * Make a node of each place of @table, with the values of the chains among the rows of @diff, and
 * their numbers depth first. Returns 0 or -ENOMEM. The caller frees both.
 */
int kb_diff_tree(const struct kb_diff_table *table, const struct kb_diff *diff,
		 struct kb_diff_node **nodes, uint32_t **order);

#endif
