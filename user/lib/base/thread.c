// SPDX-License-Identifier: MIT
#include <sched.h>
#include <signal.h>

#include "base/thread.h"

int kb_thread_start(pthread_t *thread, void *(*run)(void *context), void *context)
{
	sigset_t all, old;
	int ret;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	ret = pthread_create(thread, NULL, run, context);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return -ret;
}

unsigned int kb_cpus(void)
{
	cpu_set_t cpus;

	return sched_getaffinity(0, sizeof(cpus), &cpus) ? 1 : (unsigned int)CPU_COUNT(&cpus);
}
