// SPDX-License-Identifier: MIT
/*
 * A writer and a poller meet, again and again: the one comes to other pages of its ring,
 * the other arms the wake-up and looks at the ring. Whatever way they meet, the poller has
 * seen the last page or is woken for it. One CPU is not enough to show that they miss each other,
 * and they have to meet within a store's stay in the writer's CPU: whoever came first comes
 * later the next time, so that either is first half of the time.
 *
 *	poll [SECONDS]
 *
 * It ends as they miss each other, or after so many seconds (5), but not before each of them was first
 * once: on a busy machine they seldom run at the same time.
 *
 * The wake-up is the module's own (wake.c), with linux/ beside this file. Prints TAP.
 */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "ring/wake.h"

#define LATEST	256	/* turns of a loop by which one of them comes later, by chance */
#define BEHIND	(4 * LATEST)	/* by which the poller does so at most, on purpose */
#define PAGES	2	/* in a round, which the poller waits for */
#define PATIENCE	(1U << 20)	/* turns before the other one is taken to have no CPU */

/* A cache line each, as it is in the module. */
static unsigned long page __aligned(64);	/* the ring's, of all rounds */
static unsigned long begun __aligned(64);	/* the round that both may go into */
static unsigned long written __aligned(64);	/* the round that the writer is through with */
static bool done __aligned(64);
static bool woken;
static struct kbarman_wake wake __aligned(64);

void wake_up_interruptible_all(wait_queue_head_t *queue)
{
	(void)queue;
	WRITE_ONCE(woken, true);
}

static void wait_for(const unsigned long *round, unsigned long value)
{
	unsigned int turns = 0;

	while (__atomic_load_n(round, __ATOMIC_ACQUIRE) != value)
		if (++turns % PATIENCE == 0)
			sched_yield();	/* somebody else has the other CPU */
}

static void come_later(unsigned int turns)
{
	while (turns--)
		barrier();
}

/* A CPU each: one after the other on one of them they never meet. A thread inherits the choice. */
static void run_on(unsigned int nth)
{
	cpu_set_t cpus, one;
	int cpu;

	if (sched_getaffinity(0, sizeof(cpus), &cpus))
		return;
	for (cpu = 0; !CPU_ISSET(cpu, &cpus) || nth--; cpu++)
		;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	sched_setaffinity(0, sizeof(one), &one);
}

static void *writer(void *unused)
{
	unsigned int random = 1;
	unsigned long round;

	run_on(1);
	for (round = 1;; round++) {
		wait_for(&begun, round);
		if (done)
			return unused;
		come_later(rand_r(&random) % LATEST);
		while (page < round * PAGES) {
			WRITE_ONCE(page, page + 1);
			kbarman_wake_soon(&wake, 1);
		}
		__atomic_store_n(&written, round, __ATOMIC_RELEASE);
	}
}

static unsigned int left(void *round)
{
	return *(unsigned long *)round * PAGES - READ_ONCE(page);
}

/* As poll() does. Returns how many pages the writer has not come to. */
static unsigned int look(unsigned long round)
{
	WRITE_ONCE(woken, false);
	return kbarman_wake_arm(&wake, NULL, NULL, left, &round);
}

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? atof(argv[1]) : 5;
	unsigned long round, seen = 0, called = 0;
	unsigned int random = 2, behind = 0;
	struct timespec begin, now;
	bool saw, missed = false;
	pthread_t thread;
	cpu_set_t cpus;

	if (!sched_getaffinity(0, sizeof(cpus), &cpus) && CPU_COUNT(&cpus) < 2) {
		puts("1..1\nok 1 - no writer and poller pass each other # SKIP there is one CPU");
		return 0;
	}
	kbarman_wake_init(&wake);
	if (pthread_create(&thread, NULL, writer, NULL))
		return 2;
	run_on(0);
	clock_gettime(CLOCK_MONOTONIC, &begin);
	for (round = 1; !missed; round++) {
		clock_gettime(CLOCK_MONOTONIC, &now);
		if (now.tv_sec - begin.tv_sec + (now.tv_nsec - begin.tv_nsec) * 1e-9 >= seconds && seen &&
		    called)
			break;
		wake.pages = rand_r(&random) % (2 * PAGES);	/* somebody else waits, or nobody */
		__atomic_store_n(&begun, round, __ATOMIC_RELEASE);
		come_later(behind + rand_r(&random) % LATEST);
		saw = !look(round);
		if (saw) {
			seen++;
			behind -= behind > 0;
		} else {
			called++;
			behind += behind < BEHIND;
		}
		/* One who was woken too early looks again. */
		while (!saw && !missed) {
			while (!READ_ONCE(woken) && __atomic_load_n(&written, __ATOMIC_ACQUIRE) != round)
				;
			missed = !READ_ONCE(woken);
			saw = !missed && !look(round);
		}
		wait_for(&written, round);
	}
	done = true;
	__atomic_store_n(&begun, round, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);

	printf("# %lu times: %lu seen, %lu woken, %s\n", round - 1, seen, called,
	       missed ? "one missed" : "none missed");
	printf("%s 1 - no writer and poller pass each other\n",
	       missed ? "not ok" : "ok");
	puts("1..1");
	return missed;
}
