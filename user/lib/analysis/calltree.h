/* SPDX-License-Identifier: MIT */
/*
 * All call chains of a capture as one tree: below the root the names of tasks, below
 * them frames, outermost first. Samples weigh as in hot.h. Memory grows with the
 * different chains, not with samples.
 */
#ifndef KB_LIB_ANALYSIS_CALLTREE_H
#define KB_LIB_ANALYSIS_CALLTREE_H

#include <stdbool.h>
#include <stdint.h>

#include <kbarman/barman.h>
#include <kbarman/symbol.h>

#include "sym/tasks.h"

#define KB_CALLTREE_DEPTH	512	/* frames; outer ones beyond are left out */
#define KB_CALLTREE_ROOT	0U

struct kb_calltree_node {
	uint64_t key[2];
	const char *name;	/* "" where unknown; of a task, or a symbol */
	const char *image_base;	/* "" for tasks */
	bool kernel;
	bool inlined;
	uint32_t parent;	/* the root is its own */
	uint32_t depth;		/* the root has 0, tasks 1 */
	uint64_t samples;	/* that fell here */
	uint64_t unweighed;
	uint64_t self, total;	/* weight, once finished */
};

struct kb_calltree;

/* @barman must stay. */
int kb_calltree_create(struct kb_calltree **out, const struct kb_barman *barman,
		       struct kb_error *err);
void kb_calltree_destroy(struct kb_calltree *tree);

#define KB_CALLTREE_IDLE	"[idle]"

/*
 * From now on, before any sample, those of the idle loop fall on a node of their own below
 * the root, called KB_CALLTREE_IDLE, whatever called what there.
 */
void kb_calltree_idle_apart(struct kb_calltree *tree);

/* A sample with a PC. 0 or -ENOMEM. */
int kb_calltree_add(struct kb_calltree *tree, const struct kb_event *event,
		    struct kb_symbolizer *symbolizer);

/*
 * The parts of it: the node of the innermost frame of @event, a sample with a PC or a task
 * switch, below the name of @task_id; its child that is called @text, which stays and is
 * the same pointer for the same child. -ENOMEM.
 */
int64_t kb_calltree_find(struct kb_calltree *tree, const struct kb_event *event,
			 uint32_t task_id, struct kb_symbolizer *symbolizer);
int64_t kb_calltree_find_text(struct kb_calltree *tree, uint32_t node, const char *text);

/* Let one sample of @weight fall on node @i. */
void kb_calltree_weigh(struct kb_calltree *tree, uint32_t i, uint64_t weight);

/*
 * Settle weights; in samples with @count, or if there are no others. Returns the
 * nodes, parents before their children, and how many there are; sets @order to their
 * numbers, depth first, siblings by name. NULL without memory.
 */
const struct kb_calltree_node *kb_calltree_finish(struct kb_calltree *tree, bool count,
						  uint32_t *nr, const uint32_t **order);

/* The label of a frame: its name, else its image in brackets. Cut at @size. */
void kb_calltree_label(const struct kb_calltree_node *node, char *label, size_t size);

#endif
