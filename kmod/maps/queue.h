/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The queue of a session's facts about mappings. It has many writers, at any level up to NMI, and
 * one reader, the worker (maps.c).
 *
 * The order in the queue is the order in which places were claimed. So a fact that happened after
 * another one, on whatever CPU, is behind it in the queue.
 */
#ifndef KBARMAN_MAPS_QUEUE_H
#define KBARMAN_MAPS_QUEUE_H

#include <linux/atomic.h>
#include <linux/irq_work.h>
#include <linux/list.h>
#include <linux/workqueue.h>

#include "maps/code_bounds.h"
#include "maps/mapping.h"
#include "maps/thread_stacks.h"

struct kbarman_session;
struct kbarman_spaces;

#define KBARMAN_MAPS_SHARE_BITS	10
#define KBARMAN_MAPS_GAP_BITS	8

enum kbarman_fact_kind {
	KBARMAN_FACT_NONE,	/* the place is free, or its fact is not written yet */
	KBARMAN_FACT_MAP,
	KBARMAN_FACT_FORK,
	KBARMAN_FACT_SAMPLED,
	KBARMAN_FACT_EXIT,
	KBARMAN_FACT_STACK,
};

/* Holds references to the mm's (mm_count), and to nothing else. */
struct kbarman_fact {
	enum kbarman_fact_kind kind;	/* written last, with release */
	u32 task_id;		/* FACT_FORK: of the child; FACT_SAMPLED, _EXIT: of the process */
	u32 share;		/* index in shares[] of the process that has the places */
	u32 places;
	u64 timestamp;
	struct mm_struct *mm;	/* not for FACT_EXIT */
	union {
		struct mm_struct *parent;		/* FACT_FORK */
		struct kbarman_mapping mapping;		/* FACT_MAP */
		struct kbarman_stack_question question;	/* FACT_STACK */
	};
};

#define KBARMAN_QUEUE_SIZE	4096U	/* a power of two */
#define KBARMAN_PLACE_BYTES	176

/*
 * A place in the queue. A name that does not fit goes on in the places behind it, which have
 * nothing but its bytes.
 */
union kbarman_place {
	struct {
		struct kbarman_fact fact;
		char name[KBARMAN_PLACE_BYTES - sizeof(struct kbarman_fact)];
	};
	char more[KBARMAN_PLACE_BYTES];
};

/* What the worker is wanted for: bits of `wanted`, set before the worker is kicked. */
enum kbarman_maps_wanted {
	KBARMAN_WANTED_NOW,	/* to begin at once */
	KBARMAN_WANTED_SOON,	/* to begin when some more facts may have come */
	KBARMAN_WANTED_WALK,	/* look up the mappings that existed at start */
	KBARMAN_WANTED_GAPS,	/* a mapping or a fork was left out: see gaps[] */
	KBARMAN_WANTED_DISTRUST,	/* a fact of an unknown address space was left out */
	KBARMAN_WANTED_EXITS,	/* an exit was left out */
	KBARMAN_WANTED_TELL,	/* moved mappings are not seen any more */
};

/* What the source has of a session that runs. */
struct kbarman_maps {
	struct kbarman_session *session;
	struct list_head list;	/* of probes.c: RCU */
	struct kbarman_spaces *spaces;	/* the worker's */
	struct kbarman_code_bounds bounds;	/* the worker writes, probes read */
	struct kbarman_thread_stacks *stacks;	/* NULL: nobody asks for them. Constant */

	/*
	 * Bit = id of a process: the worker knows that it was sampled, or a fact that says so is
	 * queued. Cleared when the id gets a new owner or a new image.
	 */
	unsigned long *sampled;

	/*
	 * A writer has preemption off from kbarman_fact_claim() to kbarman_fact_publish(), so the
	 * reader never waits long.
	 */
	union kbarman_place *queue;
	unsigned int head;	/* the next place to claim; advanced by cmpxchg */
	unsigned int tail;	/* the next place to read; written by the worker */
	char name[PATH_MAX];	/* of the mapping that was taken out last. The worker's */

	/*
	 * Number of places that a process has in the queue. No process gets more places than are
	 * free. So one process that maps or forks without end fills half of the queue, and two such
	 * processes fill two thirds. Processes are told apart by a salted hash of their id, because
	 * a process that forks can choose ids.
	 */
	atomic_t shares[1 << KBARMAN_MAPS_SHARE_BITS];
	u32 share_salt;
	u32 busy;		/* the share of the fact that the worker works on, + 1; 0: none */

	/*
	 * Address spaces with facts that were left out, each with a reference (mm_count). If the
	 * array has no room, KBARMAN_WANTED_DISTRUST is set, because any address space may be
	 * meant.
	 */
	struct mm_struct *gaps[1 << KBARMAN_MAPS_GAP_BITS];

	unsigned long wanted;	/* bits of enum kbarman_maps_wanted */
	atomic_t left_out;	/* facts that got no place. The worker adds them to the capture's
				 * missed facts */
	bool stopping;		/* the worker runs for the last time and must not be queued again */
	u64 all_due;		/* jiffies64 before which the worker does not look at all address
				 * spaces. The worker's */

	struct irq_work kick;
	struct work_struct worker;
	struct delayed_work later;	/* queues the worker */
};

/*
 * Claim @places, 1 for most facts, for the current process; for @mapping also those for its name,
 * which is copied.
 * NULL if the queue is full or the process has its share.
 * Context: any, preemption off until kbarman_fact_publish().
 */
struct kbarman_fact *kbarman_fact_claim(struct kbarman_maps *maps, unsigned int places);
struct kbarman_fact *kbarman_fact_claim_map(struct kbarman_maps *maps,
					    const struct kbarman_mapping *mapping);
/*
 * The worker begins at once if a sample asks for something. Mappings, forks and exits come many at a
 * time, and what is in the queue of them stays true: the worker begins a moment later, or when the
 * queue fills.
 */
void kbarman_fact_publish(struct kbarman_maps *maps, struct kbarman_fact *fact,
			  enum kbarman_fact_kind kind);

/* Let the worker begin at once. Context: any. */
void kbarman_maps_kick(struct kbarman_maps *maps);

/* Count a fact that got no place. Context: any. */
void kbarman_fact_leave_out(struct kbarman_maps *maps);

/*
 * Leaves out a fact about @mm that will not be reported again.
 * Context: the task that owns @mm, or the parent of a task that owns @mm and has not run yet;
 * preemption off.
 */
void kbarman_fact_leave_out_for_good(struct kbarman_maps *maps, struct mm_struct *mm);

/*
 * Whether facts of the current process are still in the queue, or the worker has not done with one.
 * It may be one of another process with the same share. Context: any.
 */
bool kbarman_facts_are_pending(const struct kbarman_maps *maps);

/*
 * Take out the next fact into @fact. The name of its mapping is there until the next call. Returns
 * 1; 0 if all facts whose places were claimed before @end are out; -EAGAIN if the next one is not
 * written yet: its writer kicks the worker afterwards. It is pending until kbarman_fact_done().
 * Context: the worker.
 */
int kbarman_fact_take(struct kbarman_maps *maps, unsigned int end, struct kbarman_fact *fact);
void kbarman_fact_done(struct kbarman_maps *maps);

/*
 * The next address space of which a fact was left out, with its reference, or NULL. @at: 0 for the
 * first one. Context: the worker.
 */
struct mm_struct *kbarman_maps_next_gap(struct kbarman_maps *maps, unsigned int *at);

#endif /* KBARMAN_MAPS_QUEUE_H */
