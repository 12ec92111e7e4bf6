/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The collector of a capture, for the files that it consists of: collect_rows.c lists rows, finds
 * those whose time is over, and those of them that a ring needs; collect.c makes rings give way,
 * and empties the others.
 *
 * Context of all functions: the collector's worker.
 */
#ifndef KBARMAN_COLLECTOR_H
#define KBARMAN_COLLECTOR_H

#include <linux/irq_work.h>
#include <linux/percpu.h>
#include <linux/workqueue.h>

#include "capture/capture.h"
#include "ring/ring.h"

#define KBARMAN_COLLECT_CHUNK	4096	/* bytes of a ring that are copied at once */

/*
 * A ring is looked at in pieces of one size. Piece 0 is all that is in front of the first of
 * them, the last piece is all that is behind the one before it.
 */
#define PIECES_SHIFT	8
#define LAST_PIECE	((1U << PIECES_SHIFT) + 1)
#define NO_PIECE	(LAST_PIECE + 1)

#define KBARMAN_NOT_ENDED	(U64_MAX / 2)	/* more can be added to it */

#define NR_SHARED	3	/* of enum kbarman_resource: tasks, maps, strings */

/*
 * A row of which the time is over; of tasks also those of which it is not, because they say to which
 * process a record belongs, and so which mappings it needs.
 */
struct kbarman_ended {
	u64 from;
	u64 until;		/* KBARMAN_NOT_ENDED: its time is not over */
	u32 id;			/* of the task; of a mapping's process */
	u32 process;		/* the task's thread group; 0 in a row of a mapping */
	u32 row;
	u32 strings;		/* bytes: the row's part of its string */
	/* In the first row of an id: where ended_note() goes on, if it has come to this id in this
	 * pass over a piece of a ring. */
	u32 next, pass;
	u16 piece;		/* of the ring at hand: the last one that needs this row */
	u8 payer;
	bool needed;		/* by any ring */
};

struct kbarman_ended_rows {
	enum kbarman_resource what;
	struct kbarman_ended *rows;	/* [size], sorted by id and from */
	u32 count;
	u32 last;		/* the first row of the id that was looked up last */
};

/* A number for each payer and resource: rows, and bytes of strings. */
struct kbarman_amounts {
	u32 of[KBARMAN_PAYERS][NR_SHARED];
};

struct kbarman_collector {
	struct kbarman_capture *capture;
	struct kbarman_ring __percpu *cpu_rings;	/* of the session; while `on` is set */
	struct irq_work kick;
	struct delayed_work work;
	bool on;		/* between start() and stop() */
	bool overwrites;	/* the rings may drop records; those of a stream are its reader's */
	unsigned long rested;	/* jiffies: not to work before that */
	u64 now;		/* the time of the look: a row has ended if it did before */
	u64 slack, second;	/* ticks */
	struct kbarman_ended_rows tasks, maps;

	struct kbarman_amounts *rings;	/* [nr_cpu_ids]: what each ring needs of the rows that are
					 * over */
	struct kbarman_amounts ended;	/* what all rows take that have ended */
	struct kbarman_amounts needed;	/* what those of them take that any ring needs */
	struct kbarman_amounts levels;	/* a ring that needs more than that gives way */

	/* The ring at hand. */
	unsigned long base;	/* where piece 1 begins */
	unsigned int shift;	/* of the size of a piece */
	u32 piece;		/* the reader is in it */
	u32 pass;
	u32 by_piece[LAST_PIECE + 1];
	u64 chunk[KBARMAN_COLLECT_CHUNK / sizeof(u64)];
};

/* List the rows of tasks, and those of mappings that have ended. */
void kbarman_ended_gather(struct kbarman_collector *collector);

/*
 * Find for each row the last piece of the ring that needs it. False: kbarman_collect_stop() wants
 * the worker to end.
 */
bool kbarman_collector_read_ring(struct kbarman_collector *collector, const struct kbarman_ring *ring,
				 unsigned long base, unsigned int shift);

/* The same for all rings: `needed` of the rows, and what each ring needs. */
bool kbarman_collector_read_rings(struct kbarman_collector *collector);

void kbarman_amounts_add(struct kbarman_amounts *amounts, const struct kbarman_ended_rows *ended,
			 const struct kbarman_ended *row);

#endif /* KBARMAN_COLLECTOR_H */
