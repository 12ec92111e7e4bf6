/* SPDX-License-Identifier: MIT */
/*
 * Which counters of a sample say something of the same time. A quotient of counters is one of the
 * samples that have all of them: a core of another kind does not count them all, and a reading may
 * fail. Samples with the same counters are of one set, which has a number.
 */
#ifndef KB_LIB_ANALYSIS_SAMPLES_COUNT_SETS_H
#define KB_LIB_ANALYSIS_SAMPLES_COUNT_SETS_H

#include <stdbool.h>

#include <kbarman/event.h>
#include <kbarman/names.h>

/* Samples with more different sets are of set KB_COUNT_SETS - 1, which has no counters. */
#define KB_COUNT_SETS	16U

struct kb_count_sets;

/* @names must live as long. NULL without memory. */
struct kb_count_sets *kb_count_sets_create(const struct kb_names *names);
void kb_count_sets_destroy(struct kb_count_sets *sets);

/* The set of a sample. @partial: its counters do not cover the same time, as if none was read. */
unsigned int kb_count_sets_find(struct kb_count_sets *sets, const struct kb_event *event,
				bool partial);

/* A bit for each set that has all @nr counters @ids. */
uint32_t kb_count_sets_with(const struct kb_count_sets *sets, const uint32_t *ids, unsigned int nr);

#endif
