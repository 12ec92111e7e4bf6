/* SPDX-License-Identifier: MIT */
/*
 * kmod/ring/ring.c as a model: writers that interrupt each other two deep, on one CPU, and a
 * reader on another one. Here are the writers, reserve and publish; how room is made and
 * what a reader does is different in the two modes, and so is the memory between them:
 * overwrite.pml, and with STREAM stream.pml.
 *
 * Every load and store of what writers share is a step, and an interrupt may come
 * between any two steps. Simplified: a block is one slot and so is a page, so there is
 * neither padding nor first[] (the single-step test has those).
 *
 * Bounds: SLOTS slots; TASK records of the task, IRQ of interrupts, NMI of interrupts of
 * those or of the task. With DROP an interrupt drops records, too. With COUNTS the outermost
 * writers count by load and store. The search is exhaustive for them: some million states, half a
 * minute. run.sh goes through more of them, and through what is to go wrong when something
 * is taken away: a barrier, the second look after publishing (NO_RECHECK), and the other
 * names in #if's.
 */
#ifndef SLOTS
#define SLOTS	2
#endif
#ifndef TASK
#define TASK	3
#endif
#ifndef IRQ
#define IRQ	2
#endif
#ifndef NMI
#define NMI	1
#endif
#define RECORDS	(TASK + IRQ + NMI)

/* Places of the shared memory. A data slot holds the position that was written + 1. */
#define WRITE_OFFSET	0
#define READ_OFFSET	1
#define DATA		2
#define PLACES		(DATA + SLOTS)

/* The writing CPU's own view. */
byte w, commit, limit = SLOTS, read_offset;
byte level;				/* interrupts that are active */
byte written, nested, lost;		/* written: by outermost writers; nested: by others */
byte done;				/* levels that have written all */

/* store(place, value) and make_room(next), which sets `failed` or the limit; the reader. */
#ifdef STREAM
#include "stream.pml"
#else
#include "overwrite.pml"
#endif

/* ---- the writers: kbarman_ring_reserve(), kbarman_ring_commit() ---- */

/* kbarman_ring_publish(), of what is behind head: that is published, or the caller's own begins there */
inline publish()
{
	do
	::
#ifdef COMMIT_BEFORE_W
		if
		:: commit != head -> break
		:: else
		fi;
#endif
		next = w;
		if
		:: next == head -> break
		:: else
		fi;
#if !defined(PUBLISH_AGAIN) && !defined(COMMIT_BEFORE_W)
		if
		:: commit != head -> break
		:: else
		fi;
#endif
		store(WRITE_OFFSET, next);
		atomic { assert(next > commit); commit = next };
		head = next;
#ifdef NO_RECHECK
		break
#endif
	od
}

/* Of the outermost writers, one at a time: with COUNTS it is no single step. */
inline count()
{
#ifdef COUNTS
	next = written;
	written = next + 1
#else
	skip
#endif
}

inline count_at_once()
{
#ifndef COUNTS
	written++
#else
	skip
#endif
}

/*
 * kbarman_ring_reserve_short() and _commit_short(). The limit there is not renewed for
 * each page here, pages being slots. Sets head to 0 if it did not work.
 */
inline write_short()
{
#ifndef SHORT_FROM_W
	head = commit;
#else
	head = w;
#endif
	if
	:: head + 1 > limit -> head = 0
	:: else ->
		/* cmpxchg_local() */
		if
		:: atomic { w == head -> w = head + 1; count_at_once() };
			count();
			store(DATA + head % SLOTS, head + 1);
			head++;
			store(WRITE_OFFSET, head);
			atomic { assert(head > commit); commit = head };
#ifndef NO_RECHECK
			publish()
#endif
		:: w != head -> head = 0
		fi
	fi
}

/* What the writer has reserved begins at head. */
#ifndef OUTERMOST_BY_W
#define OUTERMOST	commit == head
#else
#define OUTERMOST	w == head + 1
#endif

/* kbarman_ring_reserve() and _commit() */
inline write_long()
{
	do
	:: head = w;
		failed = false;
		if
		:: head + 1 > limit -> make_room(head + 1)
		:: else
		fi;
		if
		:: failed -> lost++; break
		:: else
		fi;
#ifndef PLAIN_W
		/* cmpxchg_local() */
		if
		:: atomic { w == head -> w = head + 1; count_at_once() }; break
		:: w != head
		fi
#else
		w = head + 1; count_at_once(); break
#endif
	od;
	if
	:: failed
	:: else ->
#if defined(COUNT_TOGETHER)
		count();
#elif defined(COUNTS)
		if
		:: OUTERMOST -> count()
		:: else -> nested++
		fi;
#endif
		store(DATA + head % SLOTS, head + 1);
		if
		:: OUTERMOST -> publish()
#ifndef PUBLISH_NESTED
		:: else
#else
		:: else -> next = w; store(WRITE_OFFSET, next); commit = next
#endif
		fi
	fi
}

inline write_record()
{
	write_short();
	if
	:: head == 0 -> write_long()
	:: else
	fi;
	head = 0; old = 0; target = 0; next = 0; failed = false
}

active proctype task() provided (level == 0)
{
	byte head, old, target, next, i;
	bool failed;

	for (i : 1 .. TASK) {
		write_record()
	}
	done++
}

active proctype interrupt() provided (level <= 1)
{
	byte head, old, target, next, i;
	bool failed;

#ifdef DROP
	atomic { level == 0 -> level = 1 };
	drop();
	level = 0;
#endif
	for (i : 1 .. IRQ) {
		atomic { level == 0 -> level = 1 };
		write_record();
		level = 0
	}
	done++
}

active proctype nmi()
{
	byte head, old, target, next, i, interrupted;
	bool failed;

	for (i : 1 .. NMI) {
		d_step { interrupted = level; level = 2 };
		write_record();
		d_step { level = interrupted; interrupted = 0 }
	}
	done++
}
