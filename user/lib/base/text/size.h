/* SPDX-License-Identifier: MIT */
/* Sizes as people write them. */
#ifndef KB_LIB_BASE_TEXT_SIZE_H
#define KB_LIB_BASE_TEXT_SIZE_H

#include <stdbool.h>

/* Parse a number with an optional suffix K, M, G (powers of 1024). False: not a number. */
bool kb_size_parse(const char *text, unsigned long long *value);

#endif
