/* SPDX-License-Identifier: MIT */
/*
 * Counters that take turns (kbarman.turn.CPU.COUNTER), and what they would have counted in each
 * task if they had counted all the time. While a counter rests, its values are not valid.
 *
 * The time of a reading is that since the reading before it on its core, or since a switch in
 * between. The time of a task is that of all its readings, and the turn of a counter is the time of
 * those with a value that follow each other.
 */
#ifndef KB_LIB_ANALYSIS_SAMPLES_ROTATED_H
#define KB_LIB_ANALYSIS_SAMPLES_ROTATED_H

#include <kbarman/event.h>
#include <kbarman/names.h>
#include <kbarman/report.h>

struct kb_rotated;

/* *@out is NULL if no counter takes turns. @names must live as long. 0 or -ENOMEM. */
int kb_rotated_create(struct kb_rotated **out, const struct kb_header *header,
		      const struct kb_names *names);
void kb_rotated_destroy(struct kb_rotated *rotated);

/*
 * Add each switch and sample, in the order of the capture; of those that are not @wanted the time is
 * taken and nothing else. 0 or -ENOMEM.
 */
int kb_rotated_feed(struct kb_rotated *rotated, const struct kb_event *event, int64_t ns,
		    bool wanted);

/* Does counter @id take turns? @rotated may be NULL. */
bool kb_rotated_has(const struct kb_rotated *rotated, uint32_t id);

#define KB_ROTATED_ALL	UINT64_MAX	/* a task: all of them together */

/* The count of @id, which takes turns, in @task. */
struct kb_report_count kb_rotated_get(const struct kb_rotated *rotated, uint64_t task, uint32_t id);

#endif
