/* SPDX-License-Identifier: MIT */
/* Facts of a capture about something that a CPU has several of, such as counters. */
#ifndef KB_LIB_ANALYSIS_FACTS_CORE_FACT_H
#define KB_LIB_ANALYSIS_FACTS_CORE_FACT_H

#include <stdint.h>

/* Parse "PREFIX" CPU "." NUMBER "=" VALUE. Returns VALUE, or NULL if @string is something else. */
const char *kb_core_fact(const char *string, const char *prefix, uint32_t *core, uint32_t *number);

#endif
