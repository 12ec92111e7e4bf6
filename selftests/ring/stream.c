// SPDX-License-Identifier: MIT
/*
 * Streams under load: two threads as CPUs write a million records a second each into
 * rings of 4 MiB, and one reader takes them out of the memory and gives it back, as a
 * recorder does. It loses nothing; and if it stalls, what it loses is counted.
 *
 *	stream [RECORDS]	of each CPU; 3,000,000
 *
 * A ring holds what is written in 131 ms. On a machine that has other things to do, the
 * reader may not run for longer than that, and then loses with good reason: what counts
 * is the time that it could have run. A loss while it ran, or could have, is a failure;
 * one while it was kept from running means another try, and in the end a skip. The writers
 * do not catch up on time that they were not running, so they are never faster.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "ring/ring.h"

#define SIZE		(4UL << 20)
#define CPUS		2
#define RATE		1000000ULL	/* records a second and CPU */
#define BURST		1000		/* at most, for a writer that comes late */
#define KEPT_OUT_NS	100000000ULL	/* not running for so long is an excuse */
#define TRIES		5

struct record {
	u64 number, timestamp, check;
};

static struct cpu {
	struct kbarman_ring ring;
	struct kbarman_ring_page pages[SIZE >> KBARMAN_RING_PAGE_SHIFT];
	pthread_t thread;
	u64 records;		/* to write */
	u64 asked;		/* the writer's */
	bool done;
	u64 delivered, missing, next, last;	/* the reader's */
	const char *fault;
} cpus[CPUS];

static u64 now_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

u64 ring_clock(void)
{
	return now_ns(CLOCK_MONOTONIC);
}

u64 ring_counter(void)
{
	return ring_clock();
}

bool ring_clock_is_called(void)
{
	return false;
}

void ring_pages_crossed(struct kbarman_ring *ring, unsigned long pages)
{
	(void)ring;
	(void)pages;
}

void ring_write_barrier(void)
{
}

void ring_read_barrier(void)
{
}

static void cpu_init(struct cpu *cpu, u64 records)
{
	static void *memory[CPUS];
	unsigned int i = cpu - cpus;

	if (!memory[i])
		memory[i] = mmap(NULL, sizeof(struct bm_datastore_header_data) + SIZE,
				 PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (memory[i] == MAP_FAILED) {
		perror("Bail out! mmap");
		exit(1);
	}
	memset(cpu, 0, sizeof(*cpu));
	kbarman_ring_init(&cpu->ring, memory[i], cpu->pages, SIZE, i, false);
	cpu->records = records;
}

static u64 lost(const struct cpu *cpu)
{
	u64 sum = 0;
	int i;

	for (i = 0; i < KBARMAN_LOST_REASONS; i++)
		sum += local_read(&cpu->ring.lost[i]);
	return sum;
}

static void write_one(struct cpu *cpu)
{
	struct kbarman_slot slot;
	struct kbarman_short it;
	bool shortly = kbarman_ring_reserve_short(&cpu->ring, sizeof(struct record), &it);
	struct record *record;

	if (shortly)
		slot = it.slot;
	else
		slot = kbarman_ring_reserve(&cpu->ring, sizeof(*record));
	record = slot.record;
	if (record) {
		record->number = cpu->asked;
		record->timestamp = slot.timestamp;
		record->check = cpu->asked ^ slot.timestamp;
		if (shortly)
			kbarman_ring_commit_short(&cpu->ring, &it);
		else
			kbarman_ring_commit(&cpu->ring, slot.begin);
	}
	cpu->asked++;
}

static void *write_paced(void *context)
{
	struct cpu *cpu = context;
	u64 begun = now_ns(CLOCK_MONOTONIC), due, i;

	while (cpu->asked < cpu->records) {
		due = (now_ns(CLOCK_MONOTONIC) - begun) * RATE / 1000000000;
		if (due > cpu->asked + BURST) {
			begun += (due - cpu->asked - BURST) * 1000000000 / RATE;
			due = cpu->asked + BURST;
		}
		for (i = cpu->asked; i < due && i < cpu->records; i++)
			write_one(cpu);
	}
	__atomic_store_n(&cpu->done, true, __ATOMIC_RELEASE);
	return NULL;
}

/* What is there, in place, then its space given back. */
static void drain(struct cpu *cpu)
{
	struct kbarman_ring *ring = &cpu->ring;
	u64 at = ring->header->read_offset;
	u64 end = __atomic_load_n(&ring->header->write_offset, __ATOMIC_ACQUIRE);

	while (at < end) {
		const bm_uintptr *word = (const void *)(ring->data + (at & ring->mask));
		const struct record *record = (const void *)(word + 1);

		at += sizeof(*word) + (*word & ~BM_BLOCK_PADDING);
		if (*word & BM_BLOCK_PADDING)
			continue;
		if (*word != sizeof(*record) || record->check != (record->number ^ record->timestamp))
			cpu->fault = "a record is torn";
		if (record->number < cpu->next || record->timestamp < cpu->last)
			cpu->fault = "a record is out of order";
		cpu->missing += record->number - cpu->next;
		cpu->next = record->number + 1;
		cpu->last = record->timestamp;
		cpu->delivered++;
	}
	if (kbarman_ring_consume(ring, at))
		cpu->fault = "consume is refused";
}

/* How the reader fared. */
struct run {
	u64 lost, lost_without_excuse;
	u64 longest;		/* ns in which it did not run */
	u64 wall, busy;		/* ns */
};

static bool all_done(void)
{
	int i;

	for (i = 0; i < CPUS; i++)
		if (!__atomic_load_n(&cpus[i].done, __ATOMIC_ACQUIRE))
			return false;
	return true;
}

static struct run read_all(void)
{
	u64 wall = now_ns(CLOCK_MONOTONIC), busy = now_ns(CLOCK_THREAD_CPUTIME_ID);
	struct run run = { .wall = -wall, .busy = -busy };
	bool done;
	int i;

	do {
		u64 wall_before = wall, busy_before = busy, lost_now = 0, kept_out;

		done = all_done();
		for (i = 0; i < CPUS; i++)
			drain(&cpus[i]);
		for (i = 0; i < CPUS; i++)
			lost_now += lost(&cpus[i]);
		wall = now_ns(CLOCK_MONOTONIC);
		busy = now_ns(CLOCK_THREAD_CPUTIME_ID);
		kept_out = wall - wall_before - (busy - busy_before);
		if (kept_out > run.longest)
			run.longest = kept_out;
		if (kept_out < KEPT_OUT_NS)
			run.lost_without_excuse += lost_now - run.lost;
		run.lost = lost_now;
		if (!done)
			usleep(1000);
	} while (!done);
	run.wall += wall;
	run.busy += busy;
	return run;
}

/* ---- what must hold, whatever was lost ---- */

static const char *fault_of(const struct cpu *cpu)
{
	if (cpu->fault)
		return cpu->fault;
	if (cpu->delivered + lost(cpu) != cpu->asked)
		return "a record is neither delivered nor counted as lost";
	if (cpu->delivered != kbarman_ring_written(&cpu->ring))
		return "the ring miscounts what was written";
	if (cpu->missing + cpu->asked - cpu->next != lost(cpu))
		return "other records are missing than those counted as lost";
	return NULL;
}

static int count;

static int result(const char *fault, const char *name)
{
	if (fault)
		printf("# %s\n", fault);
	printf("%sok %d - %s\n", fault ? "not " : "", ++count, name);
	return fault ? 1 : 0;
}

static int paced(u64 records)
{
	const char *fault = NULL;
	struct run run = { 0 };
	int try, i;

	for (try = 0; !fault && try < TRIES && (!try || run.lost); try++) {
		for (i = 0; i < CPUS; i++)
			cpu_init(&cpus[i], records);
		for (i = 0; i < CPUS; i++)
			pthread_create(&cpus[i].thread, NULL, write_paced, &cpus[i]);
		run = read_all();
		for (i = 0; i < CPUS; i++) {
			pthread_join(cpus[i].thread, NULL);
			fault = fault ?: fault_of(&cpus[i]);
		}
		printf("# %llu records of each of %d CPUs in %.2f s, %llu lost; the reader took %.1f %% of a CPU,"
		       " and did not run for %.0f ms at most\n", (unsigned long long)records, CPUS,
		       run.wall / 1e9, (unsigned long long)run.lost,
		       100.0 * run.busy / run.wall, run.longest / 1e6);
		if (run.lost_without_excuse)
			fault = fault ?: "records were lost although the reader could run";
	}
	if (!fault && run.lost) {
		printf("ok %d - a_million_records_a_second_are_read_without_a_loss"
		       " # SKIP this machine keeps the reader from running\n", ++count);
		return 0;
	}
	return result(fault, "a_million_records_a_second_are_read_without_a_loss");
}

/* With nobody who reads, all that fits is kept, and all else counted; then it goes on. */
static int stalled(void)
{
	const u64 fit = SIZE / (sizeof(bm_uintptr) + sizeof(struct record));
	struct cpu *cpu = &cpus[0];
	const char *fault = NULL;
	int round;

	cpu_init(cpu, 0);
	for (round = 0; !fault && round < 10; round++) {
		u64 asked = cpu->asked, before = lost(cpu), delivered = cpu->delivered;

		while (cpu->asked < asked + fit + 1000 * round)
			write_one(cpu);
		if (lost(cpu) - before != 1000ULL * round)
			fault = "a record is lost with room for it, or not counted";
		drain(cpu);
		if (cpu->delivered - delivered != fit)
			fault = fault ?: "the ring does not hold what fits";
		fault = fault ?: fault_of(cpu);
	}
	return result(fault, "a_stalled_reader_loses_exactly_what_is_counted");
}

int main(int argc, char **argv)
{
	u64 records = argc > 1 ? strtoull(argv[1], NULL, 0) : 3000000;
	int failed;

	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("1..2\n");
	failed = paced(records);
	failed += stalled();
	return failed > 0;
}
