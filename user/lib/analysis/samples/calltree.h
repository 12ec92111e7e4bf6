/* SPDX-License-Identifier: MIT */
/*
 * All call chains of a capture as one tree. Below the root are names of tasks, below these are
 * frames, outermost first. Samples have the weights of hot.h. Memory grows with the number of
 * different chains, not with samples.
 */
#ifndef KB_LIB_ANALYSIS_SAMPLES_CALLTREE_H
#define KB_LIB_ANALYSIS_SAMPLES_CALLTREE_H

#include <stdbool.h>
#include <stdint.h>

#include <kbarman/report.h>

#define KB_CALLTREE_DEPTH	512	/* frames; further outer frames are left out */
struct kb_calltree;

/* @tasks must live as long as the tree. */
int kb_calltree_create(struct kb_calltree **out, const struct kb_tasks *tasks,
		       struct kb_error *err);
void kb_calltree_destroy(struct kb_calltree *tree);

#define KB_CALLTREE_IDLE	"[idle]"

/*
 * Call it before any sample: samples of the idle loop go to one node below the root, called
 * KB_CALLTREE_IDLE, whatever their call chain is.
 */
void kb_calltree_idle_apart(struct kb_calltree *tree);

/* Add a sample with a PC. Returns 0 or -ENOMEM. */
int kb_calltree_add(struct kb_calltree *tree, const struct kb_event *event,
		    struct kb_symbolizer *symbolizer);

/*
 * The two steps of adding a sample. The first finds the node of the innermost frame of @event,
 * a sample with a PC or a task switch, below the name of @task_id. The second finds the child
 * called @text of a node, with @image for its image. Both must live as long as the tree and @text be the same pointer for the
 * same child. Both return -ENOMEM.
 */
int64_t kb_calltree_find(struct kb_calltree *tree, const struct kb_event *event,
			 uint32_t task_id, struct kb_symbolizer *symbolizer);
int64_t kb_calltree_find_text(struct kb_calltree *tree, uint32_t node, const char *text,
			      const char *image);

/* Add one sample of @weight to node @i. */
void kb_calltree_weigh(struct kb_calltree *tree, uint32_t i, uint64_t weight);

/*
 * Compute the weights; with @count, or if no sample has a weight, each sample weighs 1. Returns
 * the nodes, parents before children, and sets @nr. Sets @order to their numbers, depth first,
 * siblings by name. NULL without memory.
 */
const struct kb_calltree_node *kb_calltree_finish(struct kb_calltree *tree, bool count,
						  uint32_t *nr, const uint32_t **order);

#endif
