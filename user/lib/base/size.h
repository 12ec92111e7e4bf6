/* SPDX-License-Identifier: MIT */
/* Numbers with a unit as people write them. */
#ifndef KB_LIB_BASE_SIZE_H
#define KB_LIB_BASE_SIZE_H

#include <stdbool.h>

/* Parse a number with an optional suffix K, M, G (powers of 1024). False: not a number. */
bool kb_size_parse(const char *text, unsigned long long *value);

/* Parse a number of seconds, with an optional suffix s, m, h or d. False: not a number. */
bool kb_duration_parse(const char *text, unsigned long long *seconds);

#endif
