// SPDX-License-Identifier: MIT
/* The words that are kept of a stack of s390x: test_sparse.c, with the rule of that machine. */
#define IS_CONFIG_S390	1
#include "test_sparse.c"
