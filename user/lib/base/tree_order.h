/* SPDX-License-Identifier: MIT */
#ifndef KB_LIB_BASE_TREE_ORDER_H
#define KB_LIB_BASE_TREE_ORDER_H

#include <stdint.h>

/*
 * The numbers of the @nr nodes of a tree, depth first: node 0 is the root, and all others have larger
 * numbers than their @parents. Siblings are in the order of @compare, which gets pointers to two
 * numbers. NULL without memory; the caller frees the result.
 */
uint32_t *kb_tree_order(const uint32_t *parents, uint32_t nr,
			int (*compare)(const void *left, const void *right, void *context),
			void *context);

#endif
