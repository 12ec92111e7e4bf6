/* SPDX-License-Identifier: MIT */
/*
 * analysis/classes/: each nanosecond of tasks and CPUs in one class.
 *
 * Time of a task on CPUs of which it is not known yet what it was: a system call and a page fault
 * are recorded when they end. All from the begin of a call on is the call's then, and what is in
 * front of that is not.
 *
 * A task may be interrupted as often as it likes before its call ends. So at most
 * KB_UNDECIDED_MOST pieces are kept one by one, the newest ones, and of older ones only how much
 * they are of each CPU. That is exact as well, unless a call or fault began in the middle of
 * these: then it is not known how much of them is its. What comes after a switch of which the
 * object says that the task is in a call is kept apart, so of a call that waits again and again
 * all is known.
 */
#ifndef KB_LIB_ANALYSIS_CLASSES_UNDECIDED_H
#define KB_LIB_ANALYSIS_CLASSES_UNDECIDED_H

#include <kbarman/waits.h>

#define KB_UNDECIDED_MOST	4096U

struct kb_piece {
	int64_t start, end;		/* ns */
	uint32_t core, group;		/* what tells names of tasks apart */
};

/* All zero: nothing. */
struct kb_undecided {
	struct kb_undecided_list {
		struct kb_piece *pieces;
		uint32_t nr, room;
		uint32_t in_doubt;	/* so many at the front: records were lost behind them */
		struct {		/* older ones */
			int64_t start, end;
			bool in_doubt;
			struct kb_undecided_sum {
				uint32_t core, group;
				uint64_t ns;
			} *sums;
			uint32_t nr, room;
		} folded;
	} lists[2];			/* the second one: surely in a call */
	bool in_call;
};

/* What a piece is. */
struct kb_decision {
	enum kb_class kind;
	uint32_t number;		/* of a call or a fault, if @known */
	bool known, compat;
};

struct kb_decider {
	/* Returns 0 or a negative errno, which the functions below return, too. */
	int (*take)(void *context, uint32_t core, uint32_t group, uint64_t ns,
		    const struct kb_decision *is);
	void *context;
};

/* Add @piece, which is behind the others. Each of these returns 0 or a negative errno. */
int kb_undecided_add(struct kb_undecided *undecided, const struct kb_piece *piece,
		     const struct kb_decider *decider);

/* All since @from is that. */
int kb_undecided_take(struct kb_undecided *undecided, int64_t from, const struct kb_decision *is,
		      const struct kb_decider *decider);

/* All the rest is @is, and what was in a call is @call. What is in doubt is KB_CLASS_RUNNING. */
int kb_undecided_end(struct kb_undecided *undecided, const struct kb_decision *is,
		     const struct kb_decision *call, const struct kb_decider *decider);

/* From now on the task is in a call. */
void kb_undecided_in_call(struct kb_undecided *undecided);

/* Records may be lost between what there is and what comes. */
void kb_undecided_doubt(struct kb_undecided *undecided);

void kb_undecided_release(struct kb_undecided *undecided);

#endif
