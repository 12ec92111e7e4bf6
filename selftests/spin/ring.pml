/* SPDX-License-Identifier: MIT */
/*
 * kmod/ring.c as a model: reserve, evict, publish and snapshot, with writers that
 * interrupt each other two deep and one reader on another CPU.
 *
 * What the model keeps: every load and store of the shared fields is a step of its own,
 * and an interrupt may come between any two of them. What it simplifies: a block is one
 * slot and a page is one slot, so there is neither padding nor first[] (the single-step
 * test has those).
 *
 * Memory is as weak as arm64's. The writing CPU sees its own stores at once; the reader
 * sees them in any order, but for those to one place, and for
 *	[A] smp_wmb():	stores behind it not before stores in front of it
 *	[B] release:	that store not before any store in front of it
 * and the reader's loads may be done in any order, but for
 *	[B] acquire:	the data not before the offsets
 *	[A] smp_rmb():	read_offset again not before the data
 *
 * Bounds: SLOTS slots, OUTER + FIRST + SECOND records, BUFFER stores under way, one
 * snapshot of the reader at any time (the search tries every time).
 *
 * Leave one of the four out (NO_WMB, NO_RELEASE, NO_ACQUIRE, NO_RMB) or the second look
 * after publishing (NO_RECHECK), and the search finds what goes wrong.
 */
#define SLOTS	2	/* the reader has a line for each */
#ifndef OUTER
#define OUTER	3
#endif
#ifndef FIRST
#define FIRST	2
#endif
#ifndef SECOND
#define SECOND	1
#endif
#define BUFFER	6
#define MAX	(OUTER + FIRST + SECOND)

/* Places of the shared memory. A data slot holds the position that was written + 1. */
#define WRITE_OFFSET	0
#define READ_OFFSET	1
#define DATA		2
#define PLACES		(DATA + SLOTS)

byte memory[PLACES];			/* as the reader sees it */

/* Stores under way, oldest first. */
byte place[BUFFER];
byte value[BUFFER];
byte epoch[BUFFER];			/* how many [A] were in front of it */
bool release[BUFFER];
byte pending;
byte barriers;				/* [A] so far, reset when nothing is pending */

/* The writing CPU's own view. */
byte w, commit, limit = SLOTS, read_offset, nest;
byte level;				/* interrupts that are active */
byte written, lost;

inline store(p, v, is_release)
{
	d_step {
		pending < BUFFER;
		place[pending] = p;
		value[pending] = v;
		epoch[pending] = barriers;
		release[pending] = is_release;
		pending++
	}
}

inline write_barrier()
{
#ifndef NO_WMB
	barriers = (pending > 0 -> barriers + 1 : 0)
#else
	skip
#endif
}

/* ---- the writers: kbarman_ring_reserve(), make_room(), kbarman_ring_commit() ---- */

inline make_room(next, old, target, failed)
{
	failed = false;
	do
	:: old = read_offset;
		if
		:: next - old <= SLOTS -> break
		:: else
		fi;
		if
		:: next - commit > SLOTS -> failed = true; break
		:: else
		fi;
		target = (next - SLOTS > commit -> commit : next - SLOTS);
		/* cmpxchg_local() */
		if
		:: atomic {
			read_offset == old && pending < BUFFER ->
			read_offset = target;
			store(READ_OFFSET, target, false)
		   }
		:: read_offset != old
		fi
	od;
	if
	:: !failed -> write_barrier(); limit = old + SLOTS
	:: else
	fi
}

inline publish(now)
{
	do
	:: now = w;
#ifndef NO_RELEASE
		store(WRITE_OFFSET, now, true);
#else
		store(WRITE_OFFSET, now, false);
#endif
		commit = now;
		nest = 0;
#ifndef NO_RECHECK
		if
		:: now == w -> break
		:: else -> nest = 1
		fi
#else
		break
#endif
	od
}

inline write_record(head, old, target, failed)
{
	nest++;
	do
	:: head = w;
		failed = false;
		if
		:: head + 1 > limit -> make_room(head + 1, old, target, failed)
		:: else
		fi;
		if
		:: failed -> lost++; break
		:: else
		fi;
		/* cmpxchg_local() */
		if
		:: atomic { w == head -> w = head + 1; written++ }; break
		:: w != head
		fi
	od;
	if
	:: !failed -> store(DATA + head % SLOTS, head + 1, false)
	:: else
	fi;
	if
	:: nest > 1 -> nest--
	:: else -> publish(head)
	fi
}

active proctype outer() provided (level == 0)
{
	byte head, old, target, i;
	bool failed;

	for (i : 1 .. OUTER) {
		write_record(head, old, target, failed)
	}
}

active proctype first_interrupt() provided (level <= 1)
{
	byte head, old, target, i;
	bool failed;

	for (i : 1 .. FIRST) {
		atomic { level == 0 -> level = 1 };
		write_record(head, old, target, failed);
		level = 0
	}
}

active proctype second_interrupt() provided (level <= 2)
{
	byte head, old, target, i, interrupted;
	bool failed;

	for (i : 1 .. SECOND) {
		atomic { interrupted = level; level = 2 };
		write_record(head, old, target, failed);
		level = interrupted
	}
}

/* ---- the memory between the CPUs ---- */

/*
 * A store under way may become visible if nothing in front of it is for the same place
 * or of an earlier epoch; a release only as the first of all.
 */
#define WAITS(i, j)	(j < i && (place[j] == place[i] || epoch[j] < epoch[i]))
#define MAY(i)		(i < pending && (i == 0 || !release[i]) && !WAITS(i, 0) && \
			 !WAITS(i, 1) && !WAITS(i, 2) && !WAITS(i, 3) && !WAITS(i, 4))

inline reveal(i)
{
	d_step {
		memory[place[i]] = value[i];
		j = i;
		do
		:: j < BUFFER - 1 ->
			place[j] = place[j + 1];
			value[j] = value[j + 1];
			epoch[j] = epoch[j + 1];
			release[j] = release[j + 1];
			j++
		:: else -> break
		od;
		place[j] = 0;
		value[j] = 0;
		epoch[j] = 0;
		release[j] = false;
		j = 0;
		pending--;
		if
		:: pending == 0 -> barriers = 0
		:: else
		fi
	}
}

active proctype memory_system()
{
	byte j;

end:
	do
	:: atomic { MAY(0) -> reveal(0) }
	:: atomic { MAY(1) -> reveal(1) }
	:: atomic { MAY(2) -> reveal(2) }
	:: atomic { MAY(3) -> reveal(3) }
	:: atomic { MAY(4) -> reveal(4) }
	:: atomic { MAY(5) -> reveal(5) }
	od
}

/* ---- the reader: kbarman_ring_snapshot() ---- */

#ifdef NO_ACQUIRE
#define MAY_COPY	true
#else
#define MAY_COPY	(offsets == 2)
#endif
#ifdef NO_RMB
#define MAY_LOOK_AGAIN	(offsets == 2)
#else
#define MAY_LOOK_AGAIN	(copied == (1 << SLOTS) - 1)
#endif

active proctype reader()
{
	byte end_, start, oldest, copy[SLOTS], copied, offsets, i;
	bool looked;

	do
	:: offsets == 0 -> end_ = memory[WRITE_OFFSET]; offsets = 1
	:: offsets == 1 -> start = memory[READ_OFFSET]; offsets = 2
	:: atomic { MAY_COPY && !(copied & 1) -> copy[0] = memory[DATA]; copied = copied | 1 }
	:: atomic { MAY_COPY && !(copied & 2) -> copy[1] = memory[DATA + 1]; copied = copied | 2 }
	:: MAY_LOOK_AGAIN && !looked -> oldest = memory[READ_OFFSET]; looked = true
	:: looked && copied == (1 << SLOTS) - 1 -> break
	od;
	if
	:: start <= end_ && oldest <= end_ ->
		oldest = (oldest > start -> oldest : start);
		for (i : 0 .. MAX) {
			if
			:: i >= oldest && i < end_ ->
				assert(copy[i % SLOTS] == i + 1)
			:: else
			fi
		}
	:: else
	fi
}

/* When all is done and seen: everything is published and accounted for. */
active proctype judge()
{
	timeout ->
	assert(nest == 0 && level == 0 && pending == 0);
	assert(memory[WRITE_OFFSET] == w && commit == w && written == w);
	assert(written + lost == MAX);
	assert(memory[READ_OFFSET] == read_offset && w - read_offset <= SLOTS)
}
