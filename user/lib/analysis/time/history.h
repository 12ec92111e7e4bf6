/* SPDX-License-Identifier: MIT */
/*
 * The last thousands of tiles of each CPU, to say what a CPU did while a task waited for it. What
 * the parts of a wait sum up to is found by bisection, so that a long wait costs no more than a
 * short one.
 */
#ifndef KB_LIB_ANALYSIS_TIME_HISTORY_H
#define KB_LIB_ANALYSIS_TIME_HISTORY_H

#include <kbarman/latency.h>

struct kb_history;

/* Room for @max_cores CPUs, in 16 MiB at most. Returns 0 or -ENOMEM. */
int kb_history_create(struct kb_history **out, uint32_t max_cores);
void kb_history_destroy(struct kb_history *history);

/* Add the next tile of its CPU. Returns 0 or -ENOMEM. */
int kb_history_add(struct kb_history *history, const struct kb_tile *tile);

/* The part of a wait in which its CPU does something of @kind. */
enum kb_part kb_history_part(enum kb_tile_kind kind);

/*
 * Add to @parts what @core did from @from to @until, which is not behind the end of its last tile;
 * all parts add up to that time. What is no longer known is KB_PART_UNKNOWN.
 */
void kb_history_split(const struct kb_history *history, uint32_t core, int64_t from, int64_t until,
		      uint64_t parts[KB_PARTS]);

/*
 * Call @take with what ran on @core in that time, piece by piece, the newest first, at most @most
 * pieces, until it returns false. Halts and unknown time are no pieces.
 */
void kb_history_look(const struct kb_history *history, uint32_t core, int64_t from, int64_t until,
		     unsigned int most,
		     bool (*take)(void *context, const struct kb_origin *what, uint64_t ns),
		     void *context);

/* What ran in such a time: each once, with the sum of its pieces. */
#define KB_RAN_MAX	64U	/* others are left out */

struct kb_ran {
	struct kb_latency_piece pieces[KB_RAN_MAX];
	uint32_t nr;
	uint32_t looked;	/* pieces of the history */
};

/* For kb_history_look(): adds a piece to @context, a struct kb_ran that begins as zeros. */
bool kb_ran_take(void *context, const struct kb_origin *what, uint64_t ns);

/*
 * Whether @core halted at @from, or the idle task ran and then halted. Then *@state is the idle
 * state, and *@left when the CPU left the halt, as far as that is known. In some states interrupts
 * are handled inside of the halt.
 */
bool kb_history_halted(const struct kb_history *history, uint32_t core, int64_t from, int *state,
		       int64_t *left);

#endif
