/* SPDX-License-Identifier: MIT */
#ifndef KB_LIB_BASE_THREAD_H
#define KB_LIB_BASE_THREAD_H

#include <pthread.h>

/*
 * Start a thread that gets no signals: those are handled by the threads of the program. Returns 0 or
 * a negative errno.
 */
int kb_thread_start(pthread_t *thread, void *(*run)(void *context), void *context);

/* How many CPUs this process may use, as far as it can tell: at least 1. */
unsigned int kb_cpus(void);

#endif
