// SPDX-License-Identifier: MIT
/*
 * The ring under fire: a thread writes, signal handlers of two levels interrupt it and
 * each other and write too, and another thread reads as fast as it can. In overwrite
 * mode the reader takes snapshots, and the handlers drop the oldest records now and then;
 * in stream mode the reader consumes, and now and then stops for a while, so that the ring
 * fills up and records are lost.
 *
 *	torture [SECONDS [BLOCKS]]	for so long in each mode; and in overwrite mode until
 *					so many blocks are written, and as many checked
 *
 * Every block read is checked: whole, unchanged, in order of time, and of every
 * level's numbers none is missing but what the ring counted. Prints TAP.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#include "ring/ring.h"
#include <snapshot.h>

#define SIZE		(64UL << 10)
#define COUNTED_BEFORE	(1UL << (BITS_PER_LONG - 1))	/* beyond a long's sign */
#define LEVELS		3
#define SIGNAL(level)	(SIGRTMIN + (level))

struct record {
	u64 level_and_number;	/* level << 56 | number */
	u64 timestamp;
	u64 check[];		/* of both, as many as there is room for */
};

static struct {
	struct bm_datastore_header_data header;
	u8 data[SIZE];
} __aligned(64) memory;
static struct kbarman_ring_page pages[SIZE >> KBARMAN_RING_PAGE_SHIFT];
static struct kbarman_ring ring;

/* The writing thread's, each level's own. */
static u64 asked[LEVELS], written[LEVELS];
static volatile bool done;
static volatile bool pending[LEVELS];	/* a signal of that level is on its way */
static unsigned long checked;
static unsigned long counted_exactly;	/* snapshots in front of which was as much as was told */

u64 ring_clock(void)
{
#if defined(__x86_64__)
	return __rdtsc();
#else
	static u64 ticks;

	return __atomic_add_fetch(&ticks, 1, __ATOMIC_RELAXED);
#endif
}

u64 ring_counter(void)
{
	return ring_clock();
}

bool ring_clock_is_called(void)
{
	return false;
}

void ring_pages_crossed(struct kbarman_ring *r, unsigned long pages)
{
	(void)r;
	(void)pages;
}

void ring_write_barrier(void)
{
}

void ring_read_barrier(void)
{
}

static void fail(const char *what, u64 a, u64 b)
{
	printf("not ok - %s (%llu, %llu) after %lu blocks\n", what, (unsigned long long)a,
	       (unsigned long long)b, checked);
	fflush(stdout);
	_exit(1);
}

static void write_one(unsigned int level)
{
	unsigned int words = (asked[level] * 7 + level) % 13, i;
	struct kbarman_slot slot;
	struct kbarman_short it;
	bool shortly = kbarman_ring_reserve_short(&ring, 16 + words * 8, &it);
	struct record *record;

	asked[level]++;
	if (shortly)
		slot = it.slot;
	else
		slot = kbarman_ring_reserve(&ring, 16 + words * 8);
	record = slot.record;
	if (!record)
		return;
	record->level_and_number = (u64)level << 56 | written[level]++;
	record->timestamp = slot.timestamp;
	for (i = 0; i < words; i++)
		record->check[i] = record->level_and_number ^ slot.timestamp ^ i;
	if (shortly)
		kbarman_ring_commit_short(&ring, &it);
	else
		kbarman_ring_commit(&ring, slot.begin);
}

static void on_signal(int signal)
{
	unsigned int level = signal - SIGRTMIN, i;

	pending[level] = false;
	for (i = 0; i < 1 + level * 2; i++)
		write_one(level);
	/* Now and then somebody needs less in the ring. */
	if (asked[level] % 64 < 4)
		kbarman_ring_drop(&ring, ring.w - asked[level] % SIZE);
}

static void *write_all(void *unused)
{
	(void)unused;
	while (!done)
		write_one(0);
	return NULL;
}

/* ---- reading ---- */

static u64 last_timestamp;

/* @next: by level, the number expected, ~0 = any. */
static void check_blocks(const u8 *from, long length, u64 next[LEVELS])
{
	while (length > 0) {
		bm_uintptr word = *(const bm_uintptr *)from;
		unsigned long payload = word & ~BM_BLOCK_PADDING;
		const struct record *record = (const void *)(from + sizeof(word));
		unsigned int level = record->level_and_number >> 56;
		u64 number = record->level_and_number & ~(0xffULL << 56);
		u32 i;

		if (payload > SIZE / 8 || (long)(sizeof(word) + payload) > length)
			fail("a block goes beyond the end", payload, length);
		from += sizeof(word) + payload;
		length -= sizeof(word) + payload;
		if (word & BM_BLOCK_PADDING)
			continue;
		if (level >= LEVELS || payload % 8 || payload < 16)
			fail("a block is not a record", level, payload);
		for (i = 0; i < payload / 8 - 2; i++)
			if (record->check[i] !=
			    (record->level_and_number ^ record->timestamp ^ i))
				fail("a record is torn", record->level_and_number, i);
		if (record->timestamp < last_timestamp)
			fail("time goes back", record->timestamp, last_timestamp);
		last_timestamp = record->timestamp;
		if (next[level] != ~0ULL && number != next[level])
			fail("a record is missing", number, next[level]);
		next[level] = number + 1;
		checked++;
	}
}

/*
 * Written in front of the copy's first block: each level's records bear the number of those
 * in front of them. False: the copy does not say.
 */
static bool written_before(const u8 *from, long length, u64 *count)
{
	unsigned int seen = 0;

	*count = 0;
	while (length > 0 && seen != (1U << LEVELS) - 1) {
		bm_uintptr word = *(const bm_uintptr *)from;
		unsigned long payload = word & ~BM_BLOCK_PADDING;
		const struct record *record = (const void *)(from + sizeof(word));
		unsigned int level = record->level_and_number >> 56;

		if (!(word & BM_BLOCK_PADDING) && !(seen & 1U << level)) {
			seen |= 1U << level;
			*count += record->level_and_number & ~(0xffULL << 56);
		}
		from += sizeof(word) + payload;
		length -= sizeof(word) + payload;
	}
	return seen == (1U << LEVELS) - 1;
}

static u64 overwritten(void)
{
	return kbarman_ring_overwritten(&ring) - COUNTED_BEFORE;
}

/*
 * What is overwritten before is in front of the copy, and what is in front of the copy is
 * overwritten afterwards.
 */
static void read_snapshot(u8 *copy)
{
	u64 next[LEVELS] = { ~0ULL, ~0ULL, ~0ULL };
	u64 before = overwritten(), count;
	unsigned long position;
	long length = ring_snapshot(&ring, copy, &position);
	u64 after = overwritten();

	if (length < 0)
		return;		/* the writer was faster: what it says is checked at the end */
	last_timestamp = 0;
	check_blocks(copy, length, next);
	if (!position || !written_before(copy, length, &count))
		return;
	/* Nothing was overwritten yet as `before` was asked for: it lacks what was counted before. */
	if (before < COUNTED_BEFORE && before > count)
		fail("more is overwritten than was written before", before, count);
	/* The writer was faster than the second count, then. */
	if (after < count && after != before)
		fail("less is overwritten than was written before", after, count);
	counted_exactly += before == after;
}

static void read_stream(u8 *copy, u64 next[LEVELS])
{
	unsigned long position;
	long length = ring_snapshot(&ring, copy, &position);

	if (length < 0)
		fail("no snapshot of a stream", -length, 0);
	check_blocks(copy, length, next);
	if (kbarman_ring_consume(&ring, position + length))
		fail("a whole snapshot can't be consumed", position, length);
}

struct interrupter {
	pthread_t writer;
	unsigned int level;
};

/*
 * Signals with pauses, so that the writer gets somewhere; and one at a time, or they would
 * queue up by the ten thousands while it is kept from running.
 */
static void *interrupt(void *context)
{
	const struct interrupter *interrupter = context;
	struct timespec pause = { .tv_nsec = 20000 * interrupter->level };

	while (!done) {
		if (!pending[interrupter->level]) {
			pending[interrupter->level] = true;
			pthread_kill(interrupter->writer, SIGNAL(interrupter->level));
		}
		nanosleep(&pause, NULL);
	}
	return NULL;
}

static u64 sum(const u64 values[LEVELS])
{
	return values[0] + values[1] + values[2];
}

static u64 counted(const local_t *counter)
{
	return kbarman_counted(counter) - COUNTED_BEFORE;
}

static u64 counted_written(void)
{
	return kbarman_ring_written(&ring) - COUNTED_BEFORE;
}

static void torture(bool overwrite, int seconds, unsigned long blocks)
{
	static u8 copy[SIZE];
	u64 next[LEVELS] = { 0 }, lost = 0;
	struct interrupter interrupters[] = { { .level = 1 }, { .level = 2 } };
	pthread_t writer, threads[2];
	time_t end = time(NULL) + seconds;
	unsigned long start = checked;
	unsigned int i;

	memset(&memory, 0, sizeof(memory));
	memset(asked, 0, sizeof(asked));
	memset(written, 0, sizeof(written));
	memset((void *)pending, 0, sizeof(pending));
	done = false;
	last_timestamp = 0;
	kbarman_ring_init(&ring, &memory, pages, SIZE, 0, overwrite);
	ring.written = COUNTED_BEFORE;
	for (i = 0; i < KBARMAN_LOST_REASONS; i++)
		local_add(COUNTED_BEFORE, &ring.lost[i]);
	pthread_create(&writer, NULL, write_all, NULL);
	for (i = 0; i < 2; i++) {
		interrupters[i].writer = writer;
		pthread_create(&threads[i], NULL, interrupt, &interrupters[i]);
	}
	while (time(NULL) < end || checked - start < blocks || counted_written() < blocks) {
		for (i = 0; i < 1000; i++)
			if (overwrite)
				read_snapshot(copy);
			else
				read_stream(copy, next);
		if (!overwrite)
			usleep(300);
	}
	done = true;
	for (i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	pthread_join(writer, NULL);

	if (overwrite)
		read_snapshot(copy);
	else
		read_stream(copy, next);
	for (i = 0; i < KBARMAN_LOST_REASONS; i++)
		lost += counted(&ring.lost[i]);
	if (sum(asked) != sum(written) + lost)
		fail("asked is not written and lost", sum(asked), sum(written) + lost);
	if (counted_written() != sum(written))
		fail("the ring miscounts", counted_written(), sum(written));
	if (overwrite && !counted_exactly)
		fail("no snapshot stood still for a count", checked, 0);
	if (!overwrite && sum(next) != sum(written))
		fail("a written record was not delivered", sum(next), sum(written));
	printf("# %s mode: %llu written, %llu of them in handlers, %llu lost, %lu blocks checked, none torn\n",
	       overwrite ? "overwrite" : "stream", (unsigned long long)sum(written), (unsigned long long)(written[1] + written[2]),
	       (unsigned long long)lost, checked - start);
}

int main(int argc, char **argv)
{
	int seconds = argc > 1 ? atoi(argv[1]) : 15;
	unsigned long blocks = argc > 2 ? strtoul(argv[2], NULL, 0) : 0;
	unsigned int level;

	for (level = 1; level < LEVELS; level++) {
		struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_RESTART };

		/* A handler is interrupted by the levels above its own. */
		sigemptyset(&action.sa_mask);
		sigaction(SIGNAL(level), &action, NULL);
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("1..2\n");
	torture(true, seconds, blocks);
	printf("ok 1 - snapshots of a ring under fire are whole\n");
	torture(false, seconds, 0);
	printf("ok 2 - a stream under fire delivers or counts every record\n");
	return 0;
}
