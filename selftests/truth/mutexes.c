// SPDX-License-Identifier: MIT
/*
 * Usage: mutexes
 *
 * Threads that wait for 64 mutexes of all kinds, and for locks of other kinds that no thread holds, or whose word
 * does not say who does. Prints a line for each time that a thread had a mutex:
 *
 *	THREAD ADDRESS KIND ASKED GOT GIVES GAVE
 *
 * The four times are of CLOCK_MONOTONIC_RAW, in ns: before and after it locks, before and after it unlocks. So the
 * thread has the mutex from GOT to GIVES, and may have it from ASKED to GAVE.
 */
#include <err.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { MUTEXES = 64, OTHERS = 16, THREADS = 3 * MUTEXES, ROUNDS = 8, STACK = 64 * 1024 };
enum kind { NORMAL, RECURSIVE, ERRORCHECK, ROBUST, INHERITS, KINDS };

static const char *const kinds[KINDS] = { "normal", "recursive", "errorcheck", "robust", "inherits" };

static pthread_mutex_t mutexes[MUTEXES];
static pthread_rwlock_t rwlocks[OTHERS];
static sem_t semaphores[OTHERS];
static pthread_barrier_t barrier;

static struct thread {
	pthread_t thread;
	long id;
	struct {
		unsigned int mutex;
		uint64_t asked, got, gives, gave;
	} had[ROUNDS];
} threads[THREADS];

static uint64_t now(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void nap(void)
{
	usleep(500);
}

static void need(int error, const char *what)
{
	if (error)
		errx(1, "%s: error %d", what, error);
}

static void wait_for_mutex(struct thread *thread, unsigned int round)
{
	unsigned int i = ((unsigned int)(thread - threads) + round) % MUTEXES;

	thread->had[round].mutex = i;
	thread->had[round].asked = now(CLOCK_MONOTONIC_RAW);
	need(pthread_mutex_lock(&mutexes[i]), "lock");
	thread->had[round].got = now(CLOCK_MONOTONIC_RAW);
	nap();
	thread->had[round].gives = now(CLOCK_MONOTONIC_RAW);
	need(pthread_mutex_unlock(&mutexes[i]), "unlock");
	thread->had[round].gave = now(CLOCK_MONOTONIC_RAW);
}

static void wait_for_others(unsigned int i)
{
	pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
	pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
	uint64_t end = now(CLOCK_REALTIME) + 500000;
	struct timespec until = { (time_t)(end / 1000000000), (long)(end % 1000000000) };

	if (i & 1)
		pthread_rwlock_wrlock(&rwlocks[i]);
	else
		pthread_rwlock_rdlock(&rwlocks[i]);
	nap();
	pthread_rwlock_unlock(&rwlocks[i]);
	sem_wait(&semaphores[i]);
	nap();
	sem_post(&semaphores[i]);
	pthread_mutex_lock(&mutex);
	pthread_cond_timedwait(&condition, &mutex, &until);
	pthread_mutex_unlock(&mutex);
	pthread_barrier_wait(&barrier);
}

static void *work(void *argument)
{
	struct thread *thread = argument;
	unsigned int round;

	thread->id = syscall(SYS_gettid);
	pthread_barrier_wait(&barrier);
	for (round = 0; round < ROUNDS; round++) {
		wait_for_mutex(thread, round);
		wait_for_others((unsigned int)(thread - threads) % OTHERS);
	}
	return NULL;
}

static void make(unsigned int i)
{
	static const int types[KINDS] = {
		[RECURSIVE] = PTHREAD_MUTEX_RECURSIVE, [ERRORCHECK] = PTHREAD_MUTEX_ERRORCHECK,
	};
	enum kind kind = i % KINDS;
	pthread_mutexattr_t attributes;

	pthread_mutexattr_init(&attributes);
	need(pthread_mutexattr_settype(&attributes, types[kind]), "type");
	if (kind == ROBUST)
		need(pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST), "robust");
	if (kind == INHERITS)
		need(pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT), "protocol");
	need(pthread_mutex_init(&mutexes[i], &attributes), "mutex");
}

int main(void)
{
	pthread_attr_t attributes;
	unsigned int i, round;

	for (i = 0; i < MUTEXES; i++)
		make(i);
	for (i = 0; i < OTHERS; i++) {
		pthread_rwlock_init(&rwlocks[i], NULL);
		sem_init(&semaphores[i], 0, 1);
	}
	pthread_barrier_init(&barrier, NULL, THREADS);
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK);
	for (i = 0; i < THREADS; i++)
		need(pthread_create(&threads[i].thread, &attributes, work, &threads[i]), "thread");
	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i].thread, NULL);
	for (i = 0; i < THREADS; i++)
		for (round = 0; round < ROUNDS; round++)
			printf("%ld %ju %s %ju %ju %ju %ju\n", threads[i].id,
			       (uintmax_t)(uintptr_t)&mutexes[threads[i].had[round].mutex],
			       kinds[threads[i].had[round].mutex % KINDS],
			       (uintmax_t)threads[i].had[round].asked, (uintmax_t)threads[i].had[round].got,
			       (uintmax_t)threads[i].had[round].gives, (uintmax_t)threads[i].had[round].gave);
	return 0;
}
