// SPDX-License-Identifier: MIT
/* The words that are kept of a stack of amd64: test_sparse.c, with instructions of that machine. */
#define IS_CONFIG_S390			0
#define IS_CONFIG_ARM64_PTR_AUTH	0
#ifdef __x86_64__
#define CONFIG_X86_64			1
#endif
#include "test_sparse.c"
