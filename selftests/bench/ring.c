// SPDX-License-Identifier: MIT
/*
 * What a record costs in the module's own ring, here: a task switch of 24 bytes into a
 * ring of 4 MiB that has wrapped, the guard of preemption included, nothing inlined into
 * the loop.
 *
 *	ring [--count RECORDS]
 *
 * Time is the least of ROUNDS, with the clock, without it and the clock alone in turn;
 * instructions are valgrind's count, of a run with more records less one with fewer.
 * Prints the members of a JSON object. --count is what runs under valgrind.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "callgrind.h"
#include "ring/ring.h"

#define SIZE		(4UL << 20)
#define ROUNDS		200
#define RECORDS		100000U		/* a round: about a millisecond, so that some are undisturbed */
#define COUNTED		200000U		/* under valgrind: fewer; twice that: more */

/* ring_writer.c, with the two clocks */
void writer_with_clock(struct kbarman_ring *ring, u32 task_id, u8 prev_state);
void writer_without_clock(struct kbarman_ring *ring, u32 task_id, u8 prev_state);

static struct kbarman_ring ring;

typedef void (*writer_t)(struct kbarman_ring *ring, u32 task_id, u8 prev_state);

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1e9 + time.tv_nsec;
}

static double write_records(writer_t writer, u32 records)
{
	double start = now();
	u32 i;

	for (i = 0; i < records; i++)
		writer(&ring, i, i & 1);
	return (now() - start) / records;
}

/* As a tracer would that does nothing else: in a function of its own as well. */
static u64 last;

static noinline void read_clock(void)
{
	last = BENCH_COUNTER();
}

static double read_clocks(u32 times)
{
	double start = now();
	u32 i;

	for (i = 0; i < times; i++)
		read_clock();
	return (now() - start) / times;
}

static void prepare(void)
{
	static struct kbarman_ring_page pages[SIZE >> KBARMAN_RING_PAGE_SHIFT];
	void *memory = mmap(NULL, sizeof(struct bm_datastore_header_data) + SIZE,
			    PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (memory == MAP_FAILED) {
		perror("ring: mmap");
		exit(1);
	}
	kbarman_ring_init(&ring, memory, pages, SIZE, 0, true);
	while (ring.w < 2 * SIZE)
		writer_with_clock(&ring, 0, 0);
}

/* The writer's instructions, with those of prepare(); negative if they can't be counted. */
static double count_instructions(u32 records)
{
	char arguments[32];

	snprintf(arguments, sizeof(arguments), "--count %u", records);
	return callgrind_count("--toggle-collect=writer_with_clock", arguments);
}

int main(int argc, char **argv)
{
	double with_clock = 1e9, without_clock = 1e9, clock = 1e9, few, many;
	int round;

	prepare();
	if (argc == 3 && !strcmp(argv[1], "--count")) {
		write_records(writer_with_clock, strtoul(argv[2], NULL, 0));
		return 0;
	}

	for (round = 0; round < ROUNDS; round++) {
		with_clock = min(with_clock, write_records(writer_with_clock, RECORDS));
		without_clock = min(without_clock, write_records(writer_without_clock, RECORDS));
		clock = min(clock, read_clocks(RECORDS));
	}
	few = count_instructions(COUNTED);
	many = count_instructions(2 * COUNTED);

	if (few < 0 || many < 0)
		printf("\"instructions\": null, \"why\": \"valgrind can't run here\", ");
	else
		printf("\"instructions\": %.1f, ", (many - few) / COUNTED);
	printf("\"ns\": %.2f, \"ns_with_clock\": %.2f, \"clock_ns\": %.2f\n", without_clock,
	       with_clock, clock);
	return 0;
}
