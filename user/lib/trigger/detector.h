/* SPDX-License-Identifier: MIT */
/* The detector inside of the library: what a watch needs beside kbarman/trigger.h. */
#ifndef KB_LIB_TRIGGER_DETECTOR_H
#define KB_LIB_TRIGGER_DETECTOR_H

#include <kbarman/trigger.h>

/* Names that are not in the trace: of a session that goes on. */
struct kb_detector_names {
	/* The name of a task at @ticks, as kb_tasks_name(). */
	const char *(*task)(void *context, uint32_t task_id, uint64_t ticks, char *buffer);
	/* The name of a row of the table of series; "": it has none yet. */
	const char *(*series)(void *context, uint32_t series);
	void *context;
};

/* Names come from there from now on. @names must live as long as the detector. */
void kb_detector_use_names(struct kb_detector *detector, const struct kb_detector_names *names);

/* Records of @core are missing from @start to @end ns; feed a record of that afterwards. */
int kb_detector_gap(struct kb_detector *detector, int64_t start, int64_t end);

/* Look again which counters and series the expressions name. */
int kb_detector_resolve(struct kb_detector *detector);

/* Samples of @core have the counters that those of @as have. */
void kb_detector_same_counters(struct kb_detector *detector, uint32_t core, uint32_t as);

/* Whether the counter of expression @i is known. True for what is no counter. */
bool kb_detector_knows(const struct kb_detector *detector, uint32_t i);

/* The number of moments that were found and not kept, because there were too many at once. */
uint64_t kb_detector_more(const struct kb_detector *detector);

#endif
