/* SPDX-License-Identifier: MIT */
#ifndef KB_LIB_PERCENT_H
#define KB_LIB_PERCENT_H

#include <stddef.h>
#include <stdint.h>

/* @part of @whole in percent. Nothing of nothing is 0. */
static inline double kb_percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

/*
 * The escape sequence before a share, which KB_COLOR_END ends. NULL: no colour. The limits are
 * those of perf: green from 0.5 %, red from 5 %.
 */
#define KB_COLOR_END	"\033[m"

static inline const char *kb_share_color(double percent)
{
	if (percent < 0.5)
		return NULL;
	return percent >= 5 ? "\033[31m" : "\033[32m";
}

#endif
