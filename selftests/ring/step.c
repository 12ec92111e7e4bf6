// SPDX-License-Identifier: MIT
/*
 * Nested writers at every instruction boundary of the ring's reserve, fill and
 * commit: the x86 trap flag single-steps the module's own ring.c, and at the chosen
 * step another writer comes in, as an interrupt would; a second one interrupts that
 * one likewise. At every step a reader takes its next step too.
 *
 * The oracle knows every record that was ever asked for and says what must be true
 * of the ring: see check_ring().
 *
 *	step [SECONDS [TURNS [SEED]]]	how long to go on with random two-deep nesting; how
 *					many of 16 instruction boundaries are tried (all)
 *
 * Prints TAP. Exits 1 on the first thing that is not true, saying what.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "ring/ring.h"
#include <snapshot.h>

#define SIZE		(16UL << 10)
#define PAGES		(SIZE >> KBARMAN_RING_PAGE_SHIFT)
#define MAX_PAYLOAD	(SIZE / 8 - sizeof(bm_uintptr))
#define MAX_RECORDS	4096

/* The payload. The rest of it has a pattern of id in every STRIDE-th word. */
#define STRIDE		32
struct record {
	u64 id;
	u64 timestamp;
	u64 length;
};

static struct {
	struct bm_datastore_header_data header;
	u8 data[SIZE];
} memory;
static struct kbarman_ring_page pages[PAGES];
static struct kbarman_ring ring;

static struct {			/* by id */
	u64 timestamp;		/* 0: lost */
	u32 length;
	bool refused;		/* by a ring that was closed */
	u64 from, until;	/* when it was asked for, and when it was known to be lost */
} asked[MAX_RECORDS];
static u32 nr_asked;
static u64 ticks;
static const char *scenario;
static unsigned long runs;
static unsigned long validated;

u64 ring_clock(void)
{
	return __atomic_add_fetch(&ticks, 1, __ATOMIC_RELAXED);
}

static void fail(const char *what, u64 a, u64 b);

static bool clock_is_called;	/* the counter is not the clock */

bool ring_clock_is_called(void)
{
	return clock_is_called;
}

u64 ring_counter(void)
{
	if (clock_is_called)
		fail("the counter is taken for the clock", ticks, ring.w);
	return ring_clock();
}

void ring_pages_crossed(struct kbarman_ring *r, unsigned long pages)
{
	(void)r;
	(void)pages;
}

/* read_offset at the last write barrier: what lies before it may be overwritten. */
static unsigned long fenced;
static u64 evicted;		/* records in front of it */
static volatile bool looking;	/* nobody comes in: the two go together */
static void (*at_read_barrier)(void);

/* Evicted since the last barrier: nobody has written there yet. */
static u64 evicted_since(void)
{
	unsigned long at = fenced;
	bm_uintptr word;
	u64 count = 0;

	while (at < ring.header->read_offset) {
		word = *(const bm_uintptr *)(memory.data + at % SIZE);
		count += !(word & BM_BLOCK_PADDING);
		at += sizeof(word) + (word & ~BM_BLOCK_PADDING);
	}
	return count;
}

static noinline void trap(bool on)
{
	if (on)
		__asm__ volatile("pushfq; orq $0x100, (%%rsp); popfq" ::: "cc", "memory");
	else
		__asm__ volatile("pushfq; andq $~0x100, (%%rsp); popfq" ::: "cc", "memory");
}

static noinline bool is_trapping(void)
{
	unsigned long flags;

	__asm__ volatile("pushfq; popq %0" : "=r"(flags) :: "memory");
	return flags & 0x100;
}

/* The steps of this are none of the ring's. */
void ring_write_barrier(void)
{
	bool trapping;

	looking = true;
	barrier();
	trapping = is_trapping();
	trap(false);
	evicted += evicted_since();
	fenced = ring.header->read_offset;
	if (trapping)
		trap(true);
	barrier();
	looking = false;
}

void ring_read_barrier(void)
{
	if (at_read_barrier)
		at_read_barrier();
}

static void fail(const char *what, u64 a, u64 b)
{
	printf("not ok - %s: %s (%llu, %llu) after %lu runs\n", scenario, what,
	       (unsigned long long)a, (unsigned long long)b, runs);
	fflush(stdout);
	_exit(1);
}

/* Not stepped: two writers must not get one id. */
static u32 ask(u32 length)
{
	u32 id = nr_asked++;

	if (id >= MAX_RECORDS)
		fail("the test asks for more records than it can remember", id, 0);
	asked[id].length = length;
	asked[id].timestamp = 0;
	asked[id].refused = false;
	asked[id].from = READ_ONCE(ticks);
	return id;
}

/* The position of @word, which was reserved just now. */
static unsigned long position_of(const u64 *word)
{
	unsigned long offset = (const u8 *)word - memory.data, w = READ_ONCE(ring.w);

	return w - (w - offset) % SIZE;
}

static long owed(void)
{
	long records = 0;
	int reason;

	for (reason = 0; reason < KBARMAN_LOST_REASONS; reason++)
		records += local_read(&ring.owed[reason].records);
	return records;
}

static noinline void write_id(u32 id, u32 length)
{
	struct record *record;
	struct kbarman_slot slot;
	struct kbarman_short it;
	bool shortly = kbarman_ring_reserve_short(&ring, length, &it) ||
		       kbarman_ring_reserve_called(&ring, length, &it);
	long before = owed();
	u64 *words;
	u32 i;

	if (shortly)
		slot = it.slot;
	else
		slot = kbarman_ring_reserve(&ring, length);
	record = slot.record;
	if (!record) {
		asked[id].refused = ring.closed && owed() == before;
		asked[id].until = READ_ONCE(ticks);
		return;
	}
	words = (u64 *)record;
	if (position_of(words) + length > fenced + SIZE)
		fail("data is overwritten with no barrier behind read_offset",
		     position_of(words) + length, fenced + SIZE);
	for (i = 3; i < length / 8; i += STRIDE)
		words[i] = id * 0x9e3779b97f4a7c15ULL + i;
	record->id = id;
	record->timestamp = slot.timestamp;
	record->length = length;
	asked[id].timestamp = slot.timestamp;
	if (shortly)
		kbarman_ring_commit_short(&ring, &it);
	else
		kbarman_ring_commit(&ring, slot.begin);
}


/* In the place of a record's length: the oldest records are dropped, none is written. */
#define DROP		(~0U)

static bool dropped;		/* in this run */

/* In the place of a record's length: the ring closes. */
#define CLOSE		(~0U - 1)

static u64 closed;		/* time of the close in this run; 0: none */

/* As an interrupt does it that reads the clock then. */
static noinline void close_ring(void)
{
	kbarman_ring_close(&ring);
	closed = ring_clock();
}

/* In the place of a record's length: the ring, which is closed, is emptied, and opens. */
#define BEGIN		(~0U - 2)

static bool begins;		/* in this run: what a reader knows of the ring is void */
static u64 opened;		/* time of the opening */

static noinline void begin_ring(void)
{
	kbarman_ring_forget_pages(&ring);
	kbarman_ring_empty(&ring);
	fenced = 0;
	opened = ring_clock();
	kbarman_ring_open(&ring);
}

/* Where drop goes to: the first block behind the start of the page, of what is published. */
static unsigned long drop_target(unsigned long position)
{
	unsigned long at = ring.header->read_offset, end = ring.commit;

	position = ALIGN_DOWN(position < end ? position : end, KBARMAN_RING_PAGE);
	while (at < position)
		at += sizeof(bm_uintptr) +
		      (*(const bm_uintptr *)(memory.data + at % SIZE) & ~BM_BLOCK_PADDING);
	return at;
}

static noinline void drop_some(void)
{
	unsigned long from = ring.header->read_offset, position, target;
	bool trapping;

	/* The steps of this are none of the ring's. */
	looking = true;
	barrier();
	trapping = is_trapping();
	trap(false);
	dropped = true;
	position = from + runs % 7 * 3000;
	target = drop_target(position);
	if (trapping)
		trap(true);
	barrier();
	looking = false;
	kbarman_ring_drop(&ring, position);
	if (ring.overwrite && ring.header->read_offset < target)
		fail("what was to be dropped is there", ring.header->read_offset, target);
	if (ring.header->read_offset > ring.commit)
		fail("what is not published is dropped", ring.header->read_offset, ring.commit);
}

static void write_record(u32 length)
{
	if (length == DROP)
		drop_some();
	else if (length == CLOSE)
		close_ring();
	else if (length == BEGIN)
		begin_ring();
	else
		write_id(ask(length), length);
}

/* Blocks of a copy of the ring: whole, as written, in order of time. */
static u32 check_blocks(const u8 *from, unsigned long length, u64 *oldest)
{
	u64 last = 0;
	u32 count = 0;

	*oldest = ~0ULL;
	while (length) {
		bm_uintptr word = *(const bm_uintptr *)from;
		unsigned long payload = word & ~BM_BLOCK_PADDING;
		const struct record *record = (const void *)(from + sizeof(word));
		u32 i;

		if (payload > SIZE || sizeof(word) + payload > length)
			fail("a block goes beyond the end", payload, length);
		if (!(word & BM_BLOCK_PADDING)) {
			if (record->id >= nr_asked || record->length != asked[record->id].length ||
			    record->length != payload)
				fail("a block is not a record", record->id, payload);
			for (i = 3; i < payload / 8; i += STRIDE)
				if (((const u64 *)record)[i] !=
				    record->id * 0x9e3779b97f4a7c15ULL + i)
					fail("a record is torn", record->id, i);
			if (record->timestamp <= last)
				fail("time goes back", record->timestamp, last);
			if (closed && record->timestamp > closed)
				fail("a record is later than the close", record->timestamp, closed);
			last = record->timestamp;
			if (!count++)
				*oldest = last;
			validated++;
		}
		from += sizeof(word) + payload;
		length -= sizeof(word) + payload;
	}
	return count;
}

/* ---- a reader that is as slow as can be: one step of it at a step of the writer ---- */

static struct {
	enum { LOAD_END, LOAD_START, COPY, LOAD_OLDEST } state;
	unsigned long start, end, at;
	u8 copy[SIZE];
	u32 speed;		/* words copied in a step */
} reader;

static void reader_step(void)
{
	unsigned long oldest, i;
	u64 ignored;

	switch (reader.state) {
	case LOAD_END:
		reader.end = ring.header->write_offset;
		reader.state = LOAD_START;
		return;
	case LOAD_START:
		reader.start = reader.at = ring.header->read_offset;
		reader.state = reader.start < reader.end ? COPY : LOAD_END;
		if (reader.end > ring.w)
			fail("published what is not reserved", reader.end, ring.w);
		return;
	case COPY:
		for (i = 0; i < reader.speed && reader.at != reader.end; i++, reader.at += 8)
			memcpy(reader.copy + (reader.at - reader.start),
			       memory.data + reader.at % SIZE, 8);
		if (reader.at == reader.end)
			reader.state = LOAD_OLDEST;
		return;
	case LOAD_OLDEST:
		reader.state = LOAD_END;
		oldest = ring.header->read_offset;
		if (oldest > reader.end)
			return;
		if (oldest < reader.start)
			fail("read_offset goes back", oldest, reader.start);
		check_blocks(reader.copy + (oldest - reader.start), reader.end - oldest,
			     &ignored);
	}
}

/*
 * Nobody moves while this looks, so it has the exact number, whatever the writers are at. It may
 * be an older one if writers that are not through have the ring nearly to themselves, or if no
 * whole page is left behind a drop: a writer may be about to note the only page there is.
 */
static void count_evicted(void)
{
	u64 exact = evicted + evicted_since(), told = kbarman_ring_overwritten(&ring);
	bool older = ring.w - ring.header->write_offset >= SIZE / 2 ||
		     (dropped && kbarman_ring_fill(ring.header) < 2 * KBARMAN_RING_PAGE);

	if (told > exact || (told != exact && !older))
		fail("the ring miscounts what was overwritten", told, exact);
}

/* ---- stepping ---- */

/* The reader's end only goes on. */
static unsigned long newest_end;

static void check_end(void)
{
	unsigned long end = ring.header->write_offset;

	if (end < newest_end)
		fail("write_offset goes back", end, newest_end);
	newest_end = end;
}

static volatile sig_atomic_t depth;
static struct {
	long at;		/* step at which to come in, -1 = never */
	long again;		/* and once more, behind `at`. 0 = not */
	u32 length;
	u32 times;
} nested[2];
static long step[3];

static void write_stepped(u32 length);

static void on_trap(int signal, siginfo_t *info, void *context)
{
	int level = depth;

	(void)signal, (void)info;
	if (looking)
		return;
	if (!begins) {
		reader_step();
		if (ticks % 4 == 0)
			count_evicted();
		check_end();
	}
	if (level < 2 && (step[level]++ == nested[level].at ||
			  (nested[level].again && step[level] - 1 == nested[level].again))) {
		ucontext_t *interrupted = context;
		u32 i;

		/* Nothing more is to come in: three of four times run on unstepped. */
		if (level == 0 && runs % 4 && nested[0].again < step[0])
			interrupted->uc_mcontext.gregs[REG_EFL] &= ~0x100L;

		depth = level + 1;
		step[level + 1] = 0;
		for (i = 0; i < nested[level].times; i++) {
			if (level == 0 && nested[1].at >= 0)
				write_stepped(nested[level].length);
			else
				write_record(nested[level].length);
		}
		depth = level;
	}
}

static noinline void write_stepped(u32 length)
{
	u32 id = length == DROP ? 0 : ask(length);

	trap(true);
	if (length == DROP)
		drop_some();
	else
		write_id(id, length);
	trap(false);
}

/* ---- scenarios ---- */

struct start {
	const char *name;
	bool overwrite;
	u32 laps;		/* full rounds written before */
	unsigned long offset;	/* where in the ring the next block goes */
	unsigned long consumed;	/* stream mode: bytes given back before */
};

static const struct start starts[] = {
	{ "an empty ring", true, 0, 0, 0 },
	{ "in front of a page boundary", true, 0, 4096 - 32, 0 },
	{ "in front of a page boundary of a full ring", true, 2, 4096 - 32, 0 },
	{ "on a page boundary of a full ring", true, 1, 8192, 0 },
	{ "an end that has room for a word only", true, 0, SIZE - 8, 0 },
	{ "an end that fits exactly", true, 1, SIZE - 32, 0 },
	{ "an end that needs padding", true, 1, SIZE - 24, 0 },
	{ "an end that needs padding over a page", true, 1, SIZE - 4096 - 1000, 0 },
	{ "inside a full ring", true, 1, 6000, 0 },
	{ "an empty stream", false, 0, 0, 0 },
	{ "a stream with room for one more", false, 0, SIZE - 32, 0 },
	{ "a full stream", false, 0, SIZE, 0 },
	{ "a stream that needs padding", false, 0, SIZE - 24, SIZE / 2 },
};

static void prepare(const struct start *start)
{
	unsigned long target = start->laps * SIZE + start->offset;

	memset(&memory, 0xa5, sizeof(memory));
	memset(pages, 0xa5, sizeof(pages));
	kbarman_ring_init(&ring, &memory, pages, SIZE, 3, start->overwrite);
	nr_asked = 0;
	ticks = 0;
	fenced = 0;
	evicted = 0;
	dropped = false;
	closed = 0;
	ring.closed = false;
	newest_end = 0;
	reader.state = LOAD_END;
	while (ring.w < target) {
		unsigned long left = target - ring.w;
		u32 length = left >= 96 + 32 ? 24 + (ring.w / 32 % 8) * 8 : left - 8;

		if (left > 8 && left < 32)
			length = left - 8;
		write_record(left == 8 ? 0 : length);
	}
	if (start->consumed) {
		unsigned long at = 0;

		while (at < start->consumed)
			at += 8 + *(bm_uintptr *)(memory.data + at % SIZE);
		if (kbarman_ring_consume(&ring, at))
			fail("consume refuses a boundary", at, 0);
	}
}

/* A loss that is not reported yet is so by the very next record, which goes the long way. */
static void check_short_way(void)
{
	struct kbarman_short it;

	if (owed() && (kbarman_ring_reserve_short(&ring, 24, &it) ||
		       kbarman_ring_reserve_called(&ring, 24, &it)))
		fail("a loss waits for its report, and the short way is open", owed(), ring.w);
}

/* The losses that wait for their report began with the first of them. */
static void check_gap(void)
{
	enum kbarman_loss reason = kbarman_ring_owes(&ring);
	u64 from = ~0ULL, until = ~0ULL, since;
	u32 i;

	if (!owed() != (reason == KBARMAN_LOST_REASONS))
		fail("the ring does not know what it owes", owed(), reason);
	if (!owed())
		return;
	for (i = 0; i < nr_asked; i++) {
		if (asked[i].timestamp || asked[i].refused)
			continue;
		from = min(from, asked[i].from);
		until = min(until, asked[i].until);
	}
	since = ring.owed[reason].since;
	if (since <= from || since > until)
		fail("a gap does not begin with the first loss", since, until);
}

/*
 * What must be true when no writer is active: every record is written or counted as
 * lost; what the ring holds are the newest ones, as many as it can hold but for a
 * page and a padding; and it works on.
 */
static void check_ring(const struct start *start, u32 longest)
{
	static u8 copy[SIZE];
	u64 lost = 0, written = 0, oldest, missing = 0;
	unsigned long position;
	long length;
	u32 i, count;

	if (ring.header->write_offset != ring.w || ring.commit != ring.w)
		fail("not all is published", ring.header->write_offset, ring.w);
	if (ring.header->total_written / KBARMAN_RING_PAGE != ring.w / KBARMAN_RING_PAGE ||
	    ring.header->total_written > ring.w)
		fail("the header lacks a page of what was written", ring.header->total_written,
		     ring.w);
	length = ring_snapshot(&ring, copy, &position);
	if (length < 0)
		fail("no snapshot of a still ring", -length, 0);
	count = check_blocks(copy, length, &oldest);
	if (kbarman_ring_written(&ring) != kbarman_ring_overwritten(&ring) + count)
		fail("written is not overwritten and there", kbarman_ring_overwritten(&ring),
		     count);
	check_short_way();
	check_gap();

	for (i = 0; i < nr_asked; i++) {
		if (!asked[i].timestamp)
			lost += !asked[i].refused;
		else if (asked[i].timestamp < oldest)
			missing++;
		else
			written++;
	}
	if (written != count)
		fail("a record newer than the oldest is gone", written, count);
	if (kbarman_ring_written(&ring) != written + missing)
		fail("the ring miscounts what was written", kbarman_ring_written(&ring),
		     written + missing);
	if ((u64)(local_read(&ring.lost[0]) + local_read(&ring.lost[1]) +
		  local_read(&ring.lost[2])) != lost)
		fail("the ring miscounts what was lost", local_read(&ring.lost[0]), lost);
	if (!start->overwrite && missing && !start->consumed)
		fail("a stream overwrote", missing, 0);
	if (start->overwrite && !dropped && local_read(&ring.lost[KBARMAN_LOST_NESTED]) == 0 &&
	    ring.w > SIZE && (unsigned long)length + KBARMAN_RING_PAGE + 2 * (longest + 8) +
				     MAX_PAYLOAD / 2 < SIZE)
		fail("more was overwritten than need be", length, longest);
}

static void check_goes_on(const struct start *start)
{
	u32 i, asked_before = nr_asked;
	u64 lost = local_read(&ring.lost[KBARMAN_LOST_NESTED]), since;
	enum kbarman_loss reason;

	if (!start->overwrite)
		return;
	while ((reason = kbarman_ring_owes(&ring)) != KBARMAN_LOST_REASONS)
		kbarman_ring_take_owed(&ring, reason, &since);	/* reported, as record.c does */
	closed = 0;
	kbarman_ring_open(&ring);
	for (i = 0; i < 3 * SIZE / 512; i++)
		write_record(504 - 8);
	if ((u64)local_read(&ring.lost[KBARMAN_LOST_NESTED]) != lost)
		fail("the ring is wedged", local_read(&ring.lost[1]), lost);
	if (kbarman_ring_fill(ring.header) + KBARMAN_RING_PAGE + 1024 < SIZE)
		fail("the ring does not fill any more", kbarman_ring_fill(ring.header), asked_before);
	check_ring(start, 504);
}

/* Of the processor's time: the machine may be busy otherwise. */
static void watch(int seconds)
{
	const struct itimerval limit = { .it_value = { .tv_sec = seconds } };

	setitimer(ITIMER_PROF, &limit, NULL);
}

static void on_limit(int signal)
{
	(void)signal;
	fail("it hangs", 0, 0);
}

static long come_again;		/* in the next run: nested[0].again */

/* Returns the number of steps of the outermost writer, at least up to @at. */
static long run(const struct start *start, u32 length, long at, u32 inner, u32 times, long at2,
		u32 inner2)
{
	scenario = start->name;
	prepare(start);
	nested[0].at = at;
	nested[0].length = inner;
	nested[0].times = times;
	nested[0].again = come_again;
	nested[1].at = at2;
	nested[1].length = inner2;
	nested[1].times = 1;
	step[0] = step[1] = step[2] = 0;
	reader.speed = 1 + runs % 61 * 8;
	if (runs++ % 64 == 0)
		watch(2);
	write_stepped(length);
	check_ring(start, dropped ? 0 : length > inner ? length : inner);
	return step[0];
}

static const u32 lengths[] = { 24, 40, 512, MAX_PAYLOAD };
#define COUNT(a)	(sizeof(a) / sizeof((a)[0]))

/*
 * Every boundary is for a turn of its own, one in TURNS. All scenarios have their first
 * turn before any has its second, and the common case comes before all: what is wrong
 * shows early.
 */
#define TURNS	16

/*
 * Two come in, one after the other: into the end of a writer that has stored write_offset, where
 * it finds out whether there is more to publish.
 */
static void twice(void)
{
	long steps = run(&starts[0], lengths[0], -1, 0, 0, -1, 0), at, after;

	for (at = steps / 2; at < steps; at++)
		for (after = at + 1; after < at + 16; after++) {
			come_again = after;
			run(&starts[0], lengths[0], at, lengths[0], 1, -1, 0);
		}
	come_again = 0;
}

/* A large record is lost where a small one fits, while another writer opens the short way. */
static void loss_inside(void)
{
	static const struct start start = { "a stream that pads and is nearly full", false, 0,
					    SIZE - 24, 1000 };
	long at;

	for (at = 0; run(&start, lengths[0], at, MAX_PAYLOAD, 1, -1, 0) > at; at++)
		;
}

static void common_case(void)
{
	long at;

	for (at = 0; run(&starts[0], lengths[0], at, lengths[0], 1, -1, 0) > at; at++)
		;
}

static void every_boundary(u32 turn)
{
	u32 s, l, i;
	long at;

	for (s = 0; s < COUNT(starts); s++)
		for (l = 0; l < COUNT(lengths); l++)
			for (i = l % 2; i < COUNT(lengths); i += 2)
				for (at = turn; run(&starts[s], lengths[l], at, lengths[i],
						    1 + (at + i) % 3, -1, 0) > at; at += TURNS)
					if (turn == 0)
						check_goes_on(&starts[s]);
}

/* More than the ring holds comes in while one block is not committed. */
static void overfull(u32 turn)
{
	u32 s, l;
	long at;

	for (s = 0; s < COUNT(starts); s++)
		for (l = 0; l < 2; l++)
			for (at = turn; run(&starts[s], lengths[l * 2], at, l ? 504 : MAX_PAYLOAD,
					    l ? 40 : 12, -1, 0) > at; at += TURNS)
				check_goes_on(&starts[s]);
}

/* The oldest records are dropped by who interrupts a writer; and a writer interrupts that. */
static void drops(u32 turn)
{
	u32 s, l;
	long at;

	for (s = 0; s < COUNT(starts) && starts[s].overwrite; s++)
		for (l = 0; l < COUNT(lengths); l += COUNT(lengths) - 1) {
			for (at = turn; run(&starts[s], lengths[l], at, DROP,
					    1 + at % 2, -1, 0) > at; at += TURNS)
				check_goes_on(&starts[s]);
			for (at = turn; run(&starts[s], DROP, at, lengths[l],
					    1 + at % 3 * 8, -1, 0) > at; at += TURNS)
				check_goes_on(&starts[s]);
		}
}

/* The ring is closed by who interrupts a writer, and another one comes in behind that. */
static void closes(u32 turn)
{
	u32 s, l;
	long at;

	for (s = 0; s < COUNT(starts); s++)
		for (l = 0; l < COUNT(lengths); l += COUNT(lengths) - 1)
			for (at = turn; run(&starts[s], lengths[l], at, CLOSE, 1, -1, 0) > at;
			     at += TURNS) {
				u64 lost = local_read(&ring.lost[0]);
				unsigned long w = ring.w;

				write_record(24);
				write_record(SIZE);
				if (ring.w != w || (u64)local_read(&ring.lost[0]) != lost)
					fail("a closed ring takes or loses a record", ring.w, w);
				check_goes_on(&starts[s]);
			}
}

/* A ring with the records of @start, which is closed, and which @inner interrupts at step @at. */
static void prepare_closed(const struct start *start, long at, u32 inner)
{
	prepare(start);
	/* One that has never recorded was never open. */
	if (ring.w)
		kbarman_ring_close(&ring);
	else
		kbarman_ring_shut(&ring);
	nr_asked = 0;
	begins = true;
	nested[0].at = at;
	nested[0].again = 0;
	nested[0].length = inner;
	nested[0].times = 1;
	nested[1].at = -1;
	step[0] = 0;
	runs++;
}

/* The ring is emptied and opened by who interrupts a writer. */
static bool begins_inside(const struct start *start, u32 length, long at)
{
	const struct start empty = { "a ring that begins again", start->overwrite, 0, 0, 0 };

	prepare_closed(start, at, BEGIN);
	write_stepped(length);
	begins = false;
	newest_end = 0;
	reader.state = LOAD_END;
	if (step[0] <= at)
		return false;
	if (!asked[0].timestamp)
		asked[0].refused = true;
	else if (asked[0].timestamp < opened)
		fail("a record is older than the opening", asked[0].timestamp, opened);
	write_record(24);
	check_ring(&empty, length);
	check_goes_on(&empty);
	return true;
}

/* A writer comes in, as by an NMI, while the ring is emptied. */
static bool writes_inside(const struct start *start, long at)
{
	prepare_closed(start, at, 24);
	kbarman_ring_forget_pages(&ring);
	trap(true);
	kbarman_ring_empty(&ring);
	trap(false);
	begins = false;
	if (step[0] > at && (asked[0].timestamp || !asked[0].refused))
		fail("a ring that is emptied takes a record", asked[0].timestamp, at);
	if (ring.w || ring.commit || ring.header->write_offset || ring.header->read_offset ||
	    kbarman_ring_written(&ring) || owed() || kbarman_ring_overwritten(&ring))
		fail("a ring is not empty", ring.w, kbarman_ring_written(&ring));
	return step[0] > at;
}

static void begins_again(u32 turn)
{
	u32 s, l;
	long at;

	for (s = 0; s < COUNT(starts); s++) {
		for (l = 0; l < COUNT(lengths); l += COUNT(lengths) - 1)
			for (at = turn; begins_inside(&starts[s], lengths[l], at); at += TURNS)
				;
		for (at = turn; writes_inside(&starts[s], at); at += TURNS)
			;
	}
}

static u64 random_state;

static u32 pick(u32 below)
{
	random_state = random_state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (random_state >> 33) % below;
}

static void two_deep(int seconds)
{
	time_t end = time(NULL) + seconds;

	do {
		const struct start *start = &starts[pick(COUNT(starts))];
		u32 length = lengths[pick(4)], inner = pick(8) ? lengths[pick(4)] : DROP;
		long steps = run(start, length, -1, 0, 0, -1, 0);

		run(start, length, pick(steps), inner, 1 + pick(20) / 19 * 12, pick(130),
		    pick(8) ? lengths[pick(4)] : DROP);
		check_goes_on(start);
	} while (time(NULL) < end);
}

/* A reader that is overtaken up to the very end of what it copied has a good copy. */
static unsigned long overtake_to;

static void overtake(void)
{
	while (ring.header->read_offset < overtake_to)
		write_record(24);
}

static void overtaken_reader(void)
{
	static const struct start start = { "an overtaken reader", true, 0, 8192, 0 };
	static u8 copy[SIZE];
	unsigned long position;
	long length;

	scenario = start.name;
	prepare(&start);
	overtake_to = ring.w;
	at_read_barrier = overtake;
	length = ring_snapshot(&ring, copy, &position);
	at_read_barrier = NULL;
	if (length != 0 || position != overtake_to)
		fail("it does not get what was there", length, position);
}

static void consumer(void)
{
	static const struct start start = { "a consumer", false, 0, 4096, 0 };
	unsigned long at;

	scenario = start.name;
	prepare(&start);
	for (at = 8; at <= ring.w + 8; at += 8) {
		bool taken = !kbarman_ring_consume(&ring, at);
		unsigned long boundary = 0;

		while (boundary < at)
			boundary += 8 + *(bm_uintptr *)(memory.data + boundary);
		if (taken != (boundary == at && at <= ring.w))
			fail("consume takes what is no boundary, or not one that is", at, taken);
	}
}

/* Every position, of every ring: drop goes where it says, and not a block further. */
static void dropper(void)
{
	unsigned long position, from, end, target;
	u32 s;

	for (s = 0; s < COUNT(starts); s++) {
		scenario = starts[s].name;
		prepare(&starts[s]);
		from = ring.header->read_offset;
		end = ring.w + 8192;
		for (position = from > 8192 ? from - 8192 : 0; position < end; position += 1000) {
			prepare(&starts[s]);
			target = starts[s].overwrite ? drop_target(position) : from;
			kbarman_ring_drop(&ring, position);
			if (ring.header->read_offset != target)
				fail("drop goes elsewhere", ring.header->read_offset, target);
			dropped = true;
			check_ring(&starts[s], 0);
			check_goes_on(&starts[s]);
		}
	}
}

/* ---- before there is a ring ---- */

static void not_ready(void)
{
	static struct kbarman_ring zeros;
	struct kbarman_short it;

	if (kbarman_ring_ready(&zeros) || kbarman_ring_reserve_short(&zeros, 24, &it) ||
	    kbarman_ring_reserve_called(&zeros, 24, &it) ||
	    zeros.w || zeros.commit)
		fail("a ring of zeros takes a record", zeros.w, zeros.commit);
}

/* ---- a clock that has to be called ---- */

static void called_clock(void)
{
	/* A large record is lost where a small one fits, and the next one has to tell of it. */
	static const struct start nearly_full = { "a nearly full stream", false, 0, SIZE - 1504, 0 };
	static const u32 some[] = { 0, 1, 2, 8, 10, 11 };
	static const struct start start = { "a counter that is the clock no more", true, 1, 8192, 0 };
	unsigned long before;
	struct kbarman_short it;
	long at;
	u32 i;

	clock_is_called = true;
	for (i = 0; i < COUNT(some); i++)
		for (at = 0; run(&starts[some[i]], 24, at, 24, 1 + at % 2, -1, 0) > at; at += 3)
			check_goes_on(&starts[some[i]]);
	run(&nearly_full, MAX_PAYLOAD, -1, 0, 0, -1, 0);
	clock_is_called = false;
	run(&nearly_full, MAX_PAYLOAD, -1, 0, 0, -1, 0);
	scenario = start.name;
	prepare(&start);
	clock_is_called = true;
	kbarman_ring_close_short(&ring);
	for (i = 0; i < 3 * SIZE / 32; i++)
		write_record(24);
	check_ring(&start, 24);
	before = ring.w;
	write_record(24);
	if (!kbarman_ring_reserve_called(&ring, 24, &it) || ring.w != before + 64)
		fail("the clock is called, and there is no short way", ring.w, before);
	kbarman_ring_commit_short(&ring, &it);
	clock_is_called = false;
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_sigaction = on_trap, .sa_flags = SA_SIGINFO | SA_NODEFER };
	int seconds = argc > 1 ? atoi(argv[1]) : 5;
	u32 turn, turns = argc > 2 ? strtoul(argv[2], NULL, 0) : TURNS;

	random_state = argc > 3 ? strtoull(argv[3], NULL, 0) : (u64)time(NULL);
	setvbuf(stdout, NULL, _IOLBF, 0);
	sigaction(SIGTRAP, &action, NULL);
	signal(SIGPROF, on_limit);
	printf("1..10\n# seed %llu\n", (unsigned long long)random_state);

	watch(20);
	overtaken_reader();
	printf("ok 1 - a reader may be overtaken up to the end of its copy\n");
	consumer();
	printf("ok 2 - consume takes block boundaries and nothing else\n");
	dropper();
	printf("ok 3 - drop takes whole blocks up to a page, and no more\n");
	common_case();
	twice();
	loss_inside();
	called_clock();
	for (turn = 0; turn < turns && turn < TURNS; turn++) {
		every_boundary(turn);
		overfull(turn);
		drops(turn);
		closes(turn);
		begins_again(turn);
	}
	printf("ok 4 - a writer may come in at any instruction (%u of %u tried, %lu runs)\n",
	       turn, TURNS, runs);
	printf("ok 5 - the oldest records may be dropped at any instruction\n");
	printf("ok 6 - what finds no room between unfinished writers is counted\n");
	two_deep(seconds);
	printf("ok 7 - a writer may interrupt one that interrupts (%lu runs)\n", runs);
	not_ready();
	printf("ok 8 - a ring that is not ready yet has no short way\n");
	printf("ok 9 - a ring whose clock is called does not take the counter for it\n");
	printf("ok 10 - a ring may begin again at any instruction of a writer\n");
	printf("# %lu records validated\n", validated);
	return 0;
}
