/* SPDX-License-Identifier: MIT */
/* Sums of time by task and class, and of CPUs; and the results that they become. */
#ifndef KB_LIB_ANALYSIS_CLASSES_TABLE_H
#define KB_LIB_ANALYSIS_CLASSES_TABLE_H

#include <kbarman/waits.h>
#include <kbarman/names.h>

#include "analysis/classes/undecided.h"
#include "analysis/facts/name_ids.h"
#include "analysis/trace/wanted.h"
#include "base/table.h"

struct kb_class_table {
	const struct kb_names *names;
	struct kb_wanted wanted;
	bool by_name;			/* the results are by name only */
	struct kb_name_ids comms;
	struct kb_table groups;		/* a task with a name */
	struct kb_table rows;		/* a class of a group */
	struct kb_table waits;		/* what there is to wait for */
	uint64_t (*cpus)[KB_CLASSES];	/* max_cores */
	bool *seen;			/* max_cores: the CPU has a record */
	uint32_t max_cores;

	/* The results, which point to each other and to the waits. */
	struct kb_classes_task *shown_tasks;
	struct kb_class_row *shown_rows;
	struct kb_classes_cpu *shown_cpus;
};

/* Returns 0 or a negative errno, as all of these that return a number. */
int kb_class_table_init(struct kb_class_table *table, struct kb_trace *trace,
			const struct kb_classes_options *how, struct kb_error *err);
void kb_class_table_release(struct kb_class_table *table);

/* The group of @task_id by its name at @ticks. */
int kb_class_table_group(struct kb_class_table *table, uint32_t task_id, uint64_t ticks,
			 uint32_t *group);

/* What @task_id waits for that leaves its CPU at @event, a number for kb_class_table_away(). */
int kb_class_table_wait(struct kb_class_table *table, const struct kb_event *event,
			uint32_t task_id, uint64_t *number);

/* The same number with what is inferred of the wait, if nothing else says what it is for. */
uint64_t kb_class_table_infer(uint64_t number, enum kb_inferred inferred);

/* The task of @group is recorded: groups of other tasks are no results. */
void kb_class_table_show(struct kb_class_table *table, uint32_t group);

/* A task of @group lived for @ns, its part of the wanted time. */
void kb_class_table_live(struct kb_class_table *table, uint32_t group, uint64_t ns);

/* @group had @ns of a class on @core, and so had the CPU. */
int kb_class_table_take(struct kb_class_table *table, uint32_t core, uint32_t group, uint64_t ns,
			const struct kb_decision *is);

/* ... and off the CPU, which was @core. @wait: if the class is KB_CLASS_WAIT. */
int kb_class_table_away(struct kb_class_table *table, uint32_t core, uint32_t group, uint64_t ns,
			enum kb_class kind, uint64_t wait);

/* Make the results. Nothing can be added afterwards. */
int kb_class_table_finish(struct kb_class_table *table, struct kb_classes *shown);

#endif
