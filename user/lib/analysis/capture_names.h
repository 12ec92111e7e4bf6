/* SPDX-License-Identifier: MIT */
/*
 * Names of things in a capture: of tasks at a time, with their thread group, and of PMU
 * counters. Counters of two CPUs are the same counter if they have the same name.
 */
#ifndef KB_LIB_ANALYSIS_CAPTURE_NAMES_H
#define KB_LIB_ANALYSIS_CAPTURE_NAMES_H

#include <stdint.h>

#include <kbarman/barman.h>
#include <kbarman/text.h>

#define KB_NO_SERIES	UINT32_MAX
#define KB_LOST_SERIES	"Lost records"

struct kb_names;

/* Strings live as long as both @barman and the names. */
int kb_names_create(struct kb_names **out, const struct kb_barman *barman, struct kb_error *err);
void kb_names_destroy(struct kb_names *names);

#define KB_SHORT_NAME	16	/* bytes; names of Linux tasks have at most 15 */

struct kb_task_name {
	struct kb_text name;	/* never empty: "task 12" if the capture has none */
	uint32_t tgid;		/* the task's own id if the capture has no thread group */
	uint8_t label_length;	/* 0: the name is longer than that or needs escapes */
	char label[KB_SHORT_NAME]; /* the name if no format has to escape it; copy all of it */
};

/* The name of task @task_id at @timestamp (ticks). Holds until the next call. */
const struct kb_task_name *kb_names_task(struct kb_names *names, uint32_t task_id,
					 uint64_t timestamp);

/* The number of different counters; ids are below it. */
uint32_t kb_names_nr_counters(const struct kb_names *names);
struct kb_text kb_names_counter(const struct kb_names *names, uint32_t id);

/* The number of counters in the header for @core, which may be any number. */
uint32_t kb_names_of_core(const struct kb_names *names, uint32_t core);

/* The largest number of counters that a core has. */
uint32_t kb_names_most_of_core(const struct kb_names *names);

/* The id of counter @index of @core, @index < kb_names_of_core(). */
uint32_t kb_names_counter_id(const struct kb_names *names, uint32_t core, uint32_t index);

/* The custom series with the numbers of lost records, or KB_NO_SERIES. */
uint32_t kb_names_lost_series(const struct kb_names *names);

#endif
