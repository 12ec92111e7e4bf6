/* SPDX-License-Identifier: MIT */
/*
 * What things of a capture are called: tasks at a time, with their thread group, and
 * PMU counters, which are the same counter on two CPUs if they have the same name.
 */
#ifndef KB_LIB_ANALYSIS_NAMES_H
#define KB_LIB_ANALYSIS_NAMES_H

#include <stdint.h>

#include <kbarman/barman.h>
#include <kbarman/text.h>

#define KB_NO_SERIES	UINT32_MAX
#define KB_LOST_SERIES	"Lost records"

struct kb_names;

/* All strings live as long as both @barman and the names do. */
int kb_names_create(struct kb_names **out, const struct kb_barman *barman, struct kb_error *err);
void kb_names_destroy(struct kb_names *names);

#define KB_SHORT_NAME	16	/* bytes; Linux' names have 15 at the most */

struct kb_task_name {
	struct kb_text name;	/* never empty: "task 12" where the capture has none */
	uint32_t tgid;		/* the task's own id where the capture does not say */
	uint8_t label_length;	/* 0: the name is not so simple, or is longer than that */
	char label[KB_SHORT_NAME]; /* the name as every format takes it: to copy as a whole */
};

/* Task @task_id as of @timestamp (ticks). Holds until the next call. */
const struct kb_task_name *kb_names_task(struct kb_names *names, uint32_t task_id,
					 uint64_t timestamp);

/* Different counters in the capture; their ids are below that. */
uint32_t kb_names_nr_counters(const struct kb_names *names);
struct kb_text kb_names_counter(const struct kb_names *names, uint32_t id);

/* Counters that the header has for @core, which may be any number. */
uint32_t kb_names_of_core(const struct kb_names *names, uint32_t core);

/* The id of counter @index < kb_names_of_core() of @core. */
uint32_t kb_names_counter_id(const struct kb_names *names, uint32_t core, uint32_t index);

/* The custom series that counts lost records at a gap, or KB_NO_SERIES. */
uint32_t kb_names_lost_series(const struct kb_names *names);

#endif
