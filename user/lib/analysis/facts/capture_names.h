/* SPDX-License-Identifier: MIT */
/*
 * analysis/facts/: what a capture says of itself beside its records: names of tasks, counters and
 * interrupts, cgroups, idle states, what was lost, when it was recorded and why.
 *
 * Makes the names of kbarman/names.h, and names of tasks at a time for exports.
 */
#ifndef KB_LIB_ANALYSIS_FACTS_CAPTURE_NAMES_H
#define KB_LIB_ANALYSIS_FACTS_CAPTURE_NAMES_H

#include <stdint.h>

#include <kbarman/names.h>

/*
 * @tasks: those of @barman, which must live as long as the names. Strings live as long as both
 * @barman and the names.
 */
int kb_names_create(struct kb_names **out, const struct kb_barman *barman,
		    const struct kb_tasks *tasks, struct kb_error *err);
void kb_names_destroy(struct kb_names *names);

/* kb_names_call() of call @number; @compat: of the machine's other kind of programs. */
const char *kb_names_numbered_call(const struct kb_names *names, bool compat, uint32_t number);

/* The name of the disk @device, MAJOR << 20 | MINOR; NULL: the capture has none. */
const char *kb_names_disk(const struct kb_names *names, uint32_t device);

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

/*
 * The id of the first counter with one of these names, whatever its modifiers are; UINT32_MAX: there
 * is none.
 */
uint32_t kb_names_find(const struct kb_names *names, const char *name, const char *other);

/* The smallest number of counters of a core. */
uint32_t kb_names_fewest_of_core(const struct kb_names *names);

/* kb_names_counter_id() of the first counter of @core, and of the others behind it. */
const uint32_t *kb_names_ids(const struct kb_names *names, uint32_t core);

#endif
