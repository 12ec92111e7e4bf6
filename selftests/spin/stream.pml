/* SPDX-License-Identifier: MIT */
/*
 * Stream mode, where writer and reader wait for each other: the reader gives space back
 * by a store of read_offset, the writer takes it. So both run here, step by step.
 *
 * Memory is as weak as arm64's: a store is seen by all at once, but later than others
 * behind it, and a load is done earlier than others in front of it, but for
 *	[B] release:	write_offset not before the data
 *	[B] acquire:	the data not before write_offset
 *	[C] release:	read_offset not before the reader's loads of the data
 *	[C] control dependency: the writer's data not before read_offset, which says that
 *			there is room; nor where it comes by way of `limit`
 * NO_RELEASE, NO_ACQUIRE, NO_CONSUME_RELEASE, NO_CONTROL are without them. A store that
 * was done before it was known whether it may be is never seen if it may not: what came of
 * that is not counted then (`impossible`).
 *
 * The reader takes what there is, or a part, again and again, and looks at one record each
 * time: the loads of the data are not ordered, so another one could change nothing.
 */

byte write_offset;
byte data[SLOTS];
byte delayed[SLOTS];			/* a store of it that need not be seen yet; 0 = none */
bool impossible, torn;

inline see_data(slot)
{
	data[slot] = (delayed[slot] -> delayed[slot] : data[slot]);
	delayed[slot] = 0
}

inline see_all_data()
{
	see_data(0);
	see_data(1)
#if SLOTS > 2
	; see_data(2)
#endif
}

inline store(p, v)
{
	d_step {
		if
		:: p == WRITE_OFFSET ->
#ifndef NO_RELEASE
			see_all_data();
#endif
			write_offset = v
		:: else ->
			see_data(p - DATA);
			delayed[p - DATA] = v
		fi
	}
}

/* ---- make_room() ---- */

inline make_room(next)
{
#ifdef NO_CONTROL
	store(DATA + (next - 1) % SLOTS, next);
#endif
	old = read_offset;
	if
#ifndef STREAM_OVERWRITES
	:: next - old > SLOTS ->
		failed = true;
#ifdef NO_CONTROL
		impossible = true
#endif
#endif
	:: else -> limit = old + SLOTS
	fi
}

/* ---- the reader: a copy of its own, kbarman_ring_consume() ---- */

#ifdef NO_ACQUIRE
#define BEHIND_ACQUIRE	true
#else
#define BEHIND_ACQUIRE	has_end
#endif
#ifdef NO_CONSUME_RELEASE
#define BEHIND_DATA	has_end
#else
#define BEHIND_DATA	(has_end && has_data)
#endif

active proctype reader()
{
	byte start, end_, at, to, seen;
	bool has_end, has_data, has_given;

	do
	:: done == 3 && write_offset == start -> break
	:: atomic { write_offset != start -> select(at : 0 .. SLOTS - 1) };
		at = start + at;
		do
		:: !has_end -> end_ = write_offset; has_end = true
		:: BEHIND_ACQUIRE && !has_data ->
			atomic {
				if
				:: delayed[at % SLOTS] -> see_data(at % SLOTS)
				:: true
				fi;
				seen = data[at % SLOTS];
				has_data = true
			}
		:: BEHIND_DATA && !has_given ->
			atomic { select(to : start .. end_); read_offset = to; has_given = true }
		:: has_end && has_data && has_given -> break
		od;
		atomic {
			torn = torn || (at < to && seen != at + 1);
			start = to;
			has_end = false; has_data = false; has_given = false;
			end_ = 0; at = 0; to = 0; seen = 0
		}
	od;
	/* Everything is published, delivered, and accounted for. */
	assert(impossible || !torn);
	assert(level == 0);
	assert(write_offset == w && commit == w && start == w);
	assert(written + nested == w && w + lost == RECORDS)
}
