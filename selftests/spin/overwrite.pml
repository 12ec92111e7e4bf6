/* SPDX-License-Identifier: MIT */
/*
 * Overwrite mode, where the reader writes nothing. So the writers need not wait for it:
 * they leave the list of their stores, and when they are done, the reader takes what it
 * could have seen at any moment, in any way that is allowed. It is one snapshot, of which
 * one slot is looked at: the loads of the slots are not ordered, so no other slot could
 * change what is seen.
 *
 * Memory is as weak as arm64's. The writing CPU sees its own stores at once; the reader
 * sees them in any order, but for those to one place, and for
 *	[A] smp_wmb():	stores behind it not before stores in front of it
 *	[B] release:	that store not before any store in front of it
 * The reader's loads are done in any order, but for those of one place, for the address
 * of the data, which is known with read_offset, and for
 *	[B] acquire:	what is behind it not before write_offset
 *	[A] smp_rmb():	read_offset again not before the data
 * NO_WMB, NO_RELEASE, NO_ACQUIRE, NO_RMB are without them.
 */

/* All stores to the shared memory, in the order of the program. Their numbers count from 1. */
#define STORES	(4 * RECORDS + 1)
byte place[STORES];
byte value[STORES];
byte epoch[STORES];			/* how many [A] were in front of it */
byte stores;
byte barriers;
byte newest[PLACES];			/* store; 0 = none, the place is 0 */

inline store(p, v)
{
	d_step {
		assert(stores < STORES);
		place[stores] = p;
		value[stores] = v;
		epoch[stores] = barriers;
		stores++;
		newest[p] = stores
	}
}

inline write_barrier()
{
#ifndef NO_WMB
	barriers++
#else
	skip
#endif
}

/* ---- make_room() ---- */

inline make_room(next)
{
	do
	:: old = read_offset;
		if
		:: next - old <= SLOTS -> break
		:: else
		fi;
#ifndef NO_NESTED_LOSS
		if
		:: next - commit > SLOTS -> failed = true; break
		:: else
		fi;
#endif
		target = (next - SLOTS > commit -> commit : next - SLOTS);
#ifndef PLAIN_READ_OFFSET
		/* cmpxchg_local() */
		if
		:: atomic { read_offset == old -> read_offset = target; store(READ_OFFSET, target) }
		:: read_offset != old
		fi
#else
		atomic { read_offset = target; store(READ_OFFSET, target) }
#endif
	od;
#ifdef LIMIT_BEFORE_BARRIER
	if
	:: !failed -> limit = old + SLOTS; write_barrier()
#else
	if
	:: !failed -> write_barrier(); limit = old + SLOTS
#endif
	:: else
	fi
}

/* ---- kbarman_ring_drop(), of any position: it is an interrupt, and an NMI may come in ---- */

inline drop()
{
	target = read_offset;
	do
	:: target < commit -> target++
	:: break
	od;
	do
	:: old = read_offset;
		if
		:: target <= old -> break
		:: else
		fi;
#ifndef DROP_PLAIN
		/* cmpxchg_local() */
		if
		:: atomic { read_offset == old -> read_offset = target; store(READ_OFFSET, target) };
#ifdef DROP_RENEWS_LIMIT
			limit = target + SLOTS;
#endif
			break
		:: read_offset != old
		fi
#else
		atomic { read_offset = target; store(READ_OFFSET, target) }; break
#endif
	od;
	old = 0; target = 0
}

/* ---- the reader: selftests/ring/snapshot.h ---- */

byte seen[PLACES];		/* the store that the reader has seen at least, by place */

/* What is in front of store number k in the order of the memory has been seen with it. */
inline see(k)
{
	d_step {
		all = false;
		j = 0;
		do
		:: j < PLACES -> marked[j] = false; j++
		:: else -> break
		od;
		j = k;
		do
		:: j > 0 ->
			if
			:: j == k || all || epoch[j - 1] < epoch[k - 1] || marked[place[j - 1]] ->
				marked[place[j - 1]] = true;
				if
				:: seen[place[j - 1]] < j -> seen[place[j - 1]] = j
				:: else
				fi;
#ifndef NO_RELEASE
				if
				:: place[j - 1] == WRITE_OFFSET -> all = true
				:: else
				fi
#endif
			:: else
			fi;
			j--
		:: else -> break
		od
	}
}

/* Any store to the place will do that is not older than what has been seen. */
inline load(p, into)
{
	k = seen[p];
	do
	:: break
	:: k < newest[p] ->
		k++;
		do
		:: place[k - 1] == p -> break
		:: else -> k++
		od
	od;
	see(k);
	into = (k > 0 -> value[k - 1] : 0)
}

#ifdef NO_ACQUIRE
#define BEHIND_ACQUIRE	true
#else
#define BEHIND_ACQUIRE	has_end
#endif
#ifdef NO_RMB
#define BEHIND_RMB	true
#else
#define BEHIND_RMB	(has_end && has_data)
#endif

active proctype reader()
{
	byte end_, start, oldest, data, at, j, k;
	bool has_end, has_start, has_data, has_oldest, all, marked[PLACES];

	atomic {
		done == 3;
		/* Everything is published and accounted for. */
		assert(level == 0);
		assert(value[newest[WRITE_OFFSET] - 1] == w && commit == w);
		assert(written + nested == w && w + lost == RECORDS);
		assert(w - read_offset <= SLOTS);

		select(at : 0 .. RECORDS - 1);
		do
		:: !has_end -> load(WRITE_OFFSET, end_); has_end = true
		:: BEHIND_ACQUIRE && !has_start -> load(READ_OFFSET, start); has_start = true
		:: has_start && BEHIND_ACQUIRE && !has_data ->
			load(DATA + at % SLOTS, data); has_data = true
		:: has_start && BEHIND_RMB && !has_oldest ->
			load(READ_OFFSET, oldest); has_oldest = true
		:: has_end && has_data && has_oldest -> break
		od;
		if
		:: at < end_ && at >= start && at >= oldest -> assert(data == at + 1)
		:: else
		fi
	}
}
