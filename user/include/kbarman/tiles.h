/* SPDX-License-Identifier: MIT */
/*
 * What each CPU did, to the nanosecond: a task, the idle task, a halt, a softirq or an interrupt.
 * An interrupt nests in a softirq, in a task or in idling; a piece of time belongs to the innermost
 * of them. The pieces of a CPU tile its time from its first record to the end of the recording:
 * each begins where the one before it ended, so their lengths add up to that time exactly. If the
 * record of the end of an interrupt or softirq is missing, as at the end of a recording, its last
 * piece belongs to what it interrupted.
 *
 *	struct kb_tile tiles[KB_TILES_MOST];
 *
 *	while (kb_trace_next(trace, &walk, &err) > 0)
 *		for (unsigned int i = 0, nr = kb_tiles_feed(tiling, walk, tiles); i < nr; i++)
 *			ns[tiles[i].kind] += tiles[i].end - tiles[i].start;
 *	while (kb_tiles_end(tiling, tiles))
 *		ns[tiles->kind] += tiles->end - tiles->start;
 *
 * Softirqs and interrupts are there if the capture has their records: see enum kb_what of
 * kbarman/event.h.
 */
#ifndef KBARMAN_TILES_H
#define KBARMAN_TILES_H

#include <kbarman/trace.h>

#ifdef __cplusplus
extern "C" {
#endif

enum kb_tile_kind {
	KB_TILE_UNKNOWN,	/* no record says what ran */
	KB_TILE_LOST,		/* records are missing */
	KB_TILE_TASK,		/* a task other than the idle one */
	KB_TILE_IDLE,		/* the idle task, awake */
	KB_TILE_HALT,		/* the CPU halts */
	KB_TILE_SOFTIRQ,
	KB_TILE_IRQ,		/* the handler of an interrupt */
	KB_TILE_IPI,		/* an interrupt that enum kb_ipi names */
};

#define KB_TILE_KINDS	8

/* Who ran, woke or interrupted. */
struct kb_origin {
	enum kb_tile_kind kind;	/* task, idle, softirq, irq or ipi; else it is not known */
	uint32_t id;		/* the task, softirq, irq or enum kb_ipi; KB_ORIGIN_ANY: a softirq
				 * or interrupt, but not known which */
	uint16_t behind;	/* irq: number of handlers of that interrupt behind this one */
	uint16_t call;		/* a task that woke: kb_origin_call() has the name of the system call */
};

#define KB_ORIGIN_ANY	UINT32_MAX

/* A piece of time of a CPU. Times are ns, as kb_barman_ns(). */
struct kb_tile {
	enum kb_tile_kind kind;
	uint32_t core;
	uint32_t id;		/* of the softirq, the interrupt, or enum kb_ipi */
	uint16_t behind;	/* irq: number of handlers of that interrupt behind this one */
	int idle_state;		/* if it halts: cpuidle index, or KB_STATE_UNKNOWN */
	bool has_task;
	uint32_t task_id;	/* the task that ran, or that was interrupted */
	int64_t start, end;	/* end >= start */
	bool ends;		/* what ran has ended; else it goes on, or its end is not known */
	int64_t began;		/* when it began: it may have been interrupted since */
	uint64_t own;		/* ns of its pieces up to `end` */
	bool halts;		/* the CPU is in a halt: an interrupt may run inside of it */
};

#define KB_TILES_MOST	2	/* one record ends at most so many tiles */

struct kb_tiles;

/* Begin with the first record of @trace, whose walk the caller makes. Returns 0 or -ENOMEM. */
int kb_tiles_create(struct kb_tiles **out, struct kb_trace *trace, struct kb_error *err);

/* Free @tiles, which may be NULL. */
void kb_tiles_destroy(struct kb_tiles *tiles);

/*
 * Add the record of @walk, the one that kb_trace_next() gave last. Fills @out with the tiles that
 * end with it and returns their number. Tiles without a length are left out, unless they `end`.
 * Returns -ENOMEM without memory.
 */
int kb_tiles_feed(struct kb_tiles *tiles, const struct kb_walk *walk,
		  struct kb_tile out[KB_TILES_MOST]);

/*
 * Call it after the last record until it returns false: fills @out with the next open tile. It
 * calls kb_trace_end() for the caller.
 */
bool kb_tiles_end(struct kb_tiles *tiles, struct kb_tile *out);

/*
 * What @core does after the records so far: an open tile, whose end is its last record. Returns
 * false if the core has no record yet.
 */
bool kb_tiles_now(const struct kb_tiles *tiles, uint32_t core, struct kb_tile *out);

#ifdef __cplusplus
}
#endif

#endif
