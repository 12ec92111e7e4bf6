/* SPDX-License-Identifier: MIT */
#ifndef KB_LIB_PERCENT_H
#define KB_LIB_PERCENT_H

#include <stdint.h>

/* @part of @whole in percent. Nothing of nothing is 0. */
static inline double kb_percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

#endif
