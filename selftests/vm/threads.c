// SPDX-License-Identifier: MIT
/*
 * Many threads at once: `threads [NUMBER]` starts so many (10000), each with a name of its
 * own, waits until all of them are there, lets each yield a few times, and ends them. Says
 * how many there were, and the number of the first and the last.
 */
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static pthread_barrier_t all_there;
static long *tids;

static void *run(void *context)
{
	size_t number = (size_t)context;
	char name[16];

	tids[number] = syscall(SYS_gettid);
	snprintf(name, sizeof(name), "thread-%zu", number);
	prctl(PR_SET_NAME, name);
	pthread_barrier_wait(&all_there);
	for (int i = 0; i < 3; i++)
		sched_yield();
	return NULL;
}

int main(int argc, char **argv)
{
	size_t nr = argc > 1 ? strtoul(argv[1], NULL, 0) : 10000;
	pthread_t *threads = calloc(nr, sizeof(*threads));
	pthread_attr_t attributes;

	tids = calloc(nr, sizeof(*tids));
	if (!nr || !threads || !tids)
		return 2;
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, PTHREAD_STACK_MIN > 16384 ? PTHREAD_STACK_MIN : 16384);
	pthread_barrier_init(&all_there, NULL, (unsigned int)nr + 1);
	for (size_t i = 0; i < nr; i++) {
		int error = pthread_create(&threads[i], &attributes, run, (void *)i);

		if (error) {
			printf("%zu threads, and no more: %s\n", i, strerror(error));
			return 1;
		}
	}
	pthread_barrier_wait(&all_there);
	for (size_t i = 0; i < nr; i++)
		pthread_join(threads[i], NULL);
	printf("%zu threads, %ld to %ld\n", nr, tids[0], tids[nr - 1]);
	return 0;
}
