// SPDX-License-Identifier: MIT
/*
 * A workload whose truth is known, so that a report can be held against it:
 *
 *	- threads that spend their CPU time in three functions, 60, 30 and 10 parts of a
 *	  hundred: each calls the same unit of work, that many times a round, so the
 *	  proportion holds whatever the machine is and however it is disturbed;
 *	- a thread that sleeps and hardly runs;
 *	- a ping-pong over pipes between two processes on one CPU, a known number of
 *	  times, each of which is two switches.
 *
 *	truth [-t THREADS] [-s CPU-SECONDS] [-r ROUNDS] [-p PING-PONGS]
 *
 * Each thread goes on until it has done both, the seconds and the rounds. What all did
 * is printed as KEY=VALUE lines. The unit of work is expanded in each of the three
 * functions, so that samples are in them and not in one that they share.
 */
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define UNIT_ROUNDS	2000
#define THREADS_MAX	64

static volatile uint64_t sink;

static inline __attribute__((always_inline)) void unit(uint64_t seed)
{
	uint64_t x = seed | 1;
	int i;

	for (i = 0; i < UNIT_ROUNDS; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
	}
	sink = x;
}

/* Each aligned alike: the same loop may cost more across a line of the cache. */
#define PART(name, percent) \
	__attribute__((noinline, noclone, aligned(64))) static void name(void) \
	{ \
		int i; \
		for (i = 0; i < (percent); i++) \
			unit(i); \
	}

PART(truth_sixty, 60)
PART(truth_thirty, 30)
PART(truth_ten, 10)

struct burner {
	pthread_t thread;
	double seconds;
	uint64_t rounds_wanted, rounds;
	int number;
	pid_t id;
};

static double cpu_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static pid_t thread_id(void)
{
	return syscall(SYS_gettid);
}

static void *burn(void *argument)
{
	struct burner *burner = argument;
	char name[16];

	snprintf(name, sizeof(name), "burner-%d", burner->number);
	prctl(PR_SET_NAME, name);
	burner->id = thread_id();
	do {
		truth_sixty();
		truth_thirty();
		truth_ten();
		burner->rounds++;
		/* The look at the clock is a system call, and is no part of the truth. */
	} while (burner->rounds % 16 || burner->rounds < burner->rounds_wanted ||
		 cpu_seconds() < burner->seconds);
	return NULL;
}

static struct sleeper {
	pthread_t thread;
	pid_t id;
	unsigned int naps;
	long switches;
	volatile int stop;
} sleeper;

/* How often the kernel has taken this thread off its CPU. */
static long switches_away(void)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	return usage.ru_nvcsw + usage.ru_nivcsw;
}

static void *sleep_often(void *unused)
{
	const struct timespec nap = { .tv_nsec = 10000000 };

	(void)unused;
	prctl(PR_SET_NAME, "sleeper");
	sleeper.id = thread_id();
	sleeper.switches = switches_away();
	while (!sleeper.stop) {
		nanosleep(&nap, NULL);
		sleeper.naps++;
	}
	sleeper.switches = switches_away() - sleeper.switches;
	return NULL;
}

/* Returns the other process's id. */
static pid_t ping_pong(unsigned long rounds)
{
	int there[2], back[2];
	cpu_set_t all, one;
	char byte = 0;
	pid_t pong;

	sched_getaffinity(0, sizeof(all), &all);
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	sched_setaffinity(0, sizeof(one), &one);
	if (pipe(there) || pipe(back)) {
		perror("truth: pipe");
		exit(1);
	}
	pong = fork();
	if (pong < 0) {
		perror("truth: fork");
		exit(1);
	}
	if (!pong) {
		prctl(PR_SET_NAME, "pong");
		close(there[1]);
		while (read(there[0], &byte, 1) == 1)
			if (write(back[1], &byte, 1) != 1)
				break;
		_exit(0);
	}
	while (rounds--)
		if (write(there[1], &byte, 1) != 1 || read(back[0], &byte, 1) != 1) {
			perror("truth: ping-pong");
			exit(1);
		}
	close(there[1]);
	waitpid(pong, NULL, 0);
	sched_setaffinity(0, sizeof(all), &all);
	return pong;
}

int main(int argc, char **argv)
{
	static struct burner burners[THREADS_MAX];
	unsigned long threads = 2, ping_pongs = 2000, rounds = 0, i;
	double seconds = 1;
	int option, error = 0;
	pid_t pong;

	while ((option = getopt(argc, argv, "t:s:r:p:")) != -1)
		switch (option) {
		case 't':
			threads = strtoul(optarg, NULL, 10);
			break;
		case 's':
			seconds = strtod(optarg, NULL);
			break;
		case 'r':
			rounds = strtoul(optarg, NULL, 10);
			break;
		case 'p':
			ping_pongs = strtoul(optarg, NULL, 10);
			break;
		default:
			return 2;
		}
	if (threads > THREADS_MAX) {
		fprintf(stderr, "truth: at most %d threads\n", THREADS_MAX);
		return 2;
	}

	error = pthread_create(&sleeper.thread, NULL, sleep_often, NULL);
	for (i = 0; i < threads && !error; i++) {
		burners[i].number = i;
		burners[i].seconds = seconds;
		burners[i].rounds_wanted = rounds;
		error = pthread_create(&burners[i].thread, NULL, burn, &burners[i]);
	}
	if (error) {
		fprintf(stderr, "truth: no thread\n");
		return 1;
	}
	pong = ping_pong(ping_pongs);
	for (i = 0; i < threads; i++)
		pthread_join(burners[i].thread, NULL);
	sleeper.stop = 1;
	pthread_join(sleeper.thread, NULL);

	printf("process=%d\n", (int)getpid());
	printf("parts=truth_sixty:60,truth_thirty:30,truth_ten:10\n");
	for (i = 0; i < threads; i++)
		printf("burner.%lu=%d,rounds=%" PRIu64 "\n", i, (int)burners[i].id,
		       burners[i].rounds);
	printf("sleeper=%d,naps=%u,switches=%ld\n", (int)sleeper.id, sleeper.naps,
	       sleeper.switches);
	printf("ping=%d\npong=%d\nping_pongs=%lu\n", (int)getpid(), (int)pong, ping_pongs);
	return 0;
}
