// SPDX-License-Identifier: MIT
/*
 * Moments that a trigger has to find, at known times: each ends with the bookmark "injected KIND N",
 * which is in the capture if the moment is.
 *
 *	outliers KIND COUNT GAP_MS LENGTH_MS
 *
 *	delay	a task 'victim' is woken while a task of a higher class keeps its CPU for LENGTH_MS
 *	sleep	'sleeper' sleeps for LENGTH_MS
 *	mark	'marker' writes the bookmark alone
 *	calm	the same as delay, and the other task gives its CPU up at once
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <sys/prctl.h>

#include <kbarman/mark.h>

static const char *kind;
static int count;
static long gap_ms, length_ms;
static sem_t go, done;

static void fail(const char *what)
{
	fprintf(stderr, "outliers: %s: %s\n", what, strerror(errno));
	exit(1);
}

static long long now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static void pause_ms(long ms)
{
	struct timespec time = { ms / 1000, ms % 1000 * 1000000 };

	while (nanosleep(&time, &time) && errno == EINTR)
		;
}

static void burn_ms(long ms)
{
	long long until = now_ns() + ms * 1000000LL;

	while (now_ns() < until)
		;
}

static void tell(int i)
{
	char text[64];

	snprintf(text, sizeof(text), "injected %s %d", kind, i);
	kb_mark_bookmark(0, text);
	printf("%s\n", text);
	fflush(stdout);
}

static void *be_victim(void *unused)
{
	prctl(PR_SET_NAME, "victim");
	for (int i = 1; i <= count; i++) {
		while (sem_wait(&go) && errno == EINTR)
			;
		tell(i);
		sem_post(&done);
	}
	return unused;
}

/* Both on one CPU: the one that wakes has a class above that of the victim. */
static void delay(long ms)
{
	struct sched_param high = { .sched_priority = 10 };
	cpu_set_t cpus;
	pthread_t victim;

	CPU_ZERO(&cpus);
	CPU_SET(0, &cpus);
	if (sched_setaffinity(0, sizeof(cpus), &cpus))
		fail("sched_setaffinity");
	sem_init(&go, 0, 0);
	sem_init(&done, 0, 0);
	if (pthread_create(&victim, NULL, be_victim, NULL))
		fail("pthread_create");
	pause_ms(200);
	if (sched_setscheduler(0, SCHED_FIFO, &high))
		fail("sched_setscheduler");
	prctl(PR_SET_NAME, "bully");
	for (int i = 1; i <= count; i++) {
		sem_post(&go);
		burn_ms(ms);
		while (sem_wait(&done) && errno == EINTR)
			;
		pause_ms(gap_ms);
	}
	pthread_join(victim, NULL);
}

static void be(const char *name, long ms)
{
	prctl(PR_SET_NAME, name);
	for (int i = 1; i <= count; i++) {
		if (ms)
			pause_ms(ms);
		tell(i);
		for (long left = gap_ms; left > 0; left -= 20)	/* short sleeps are no outliers */
			pause_ms(left < 20 ? left : 20);
	}
}

int main(int argc, char **argv)
{
	if (argc != 5)
		return 2;
	kind = argv[1];
	count = atoi(argv[2]);
	gap_ms = atol(argv[3]);
	length_ms = atol(argv[4]);
	if (!strcmp(kind, "delay"))
		delay(length_ms);
	else if (!strcmp(kind, "calm"))
		delay(0);
	else if (!strcmp(kind, "sleep"))
		be("sleeper", length_ms);
	else if (!strcmp(kind, "mark"))
		be("marker", 0);
	else
		return 2;
	return 0;
}
