/* SPDX-License-Identifier: MIT */
/*
 * export/traces/: traces of records one by one, for programs that read such: CTF, Heph, TPTP.
 *
 * State of threads and sums of their time for the TPTP export, in bounded memory: a capture may
 * have any number of threads.
 */
#ifndef KB_LIB_EXPORT_TRACES_TPTP_THREADS_H
#define KB_LIB_EXPORT_TRACES_TPTP_THREADS_H

#include <stdbool.h>
#include <stdint.h>

enum tptp_wait {
	TPTP_WAITS_NOT,
	TPTP_WAITS,		/* monWait was written */
	TPTP_CONTENDS,		/* monContendedEnter was written */
};

struct tptp_thread {
	int64_t id;		/* the task's; -(c + 1): the idle task of CPU c */
	uint64_t object;	/* object that it waits for */
	uint32_t held_on;	/* core + 1 of the CPU with its open methods; 0 = none */
	uint32_t sums;		/* index + 1 of its first sum */
	uint32_t next;		/* index + 1 in its bucket or in the free list */
	uint8_t waits;		/* enum tptp_wait */
	bool used;
	bool announced;		/* threadStart was written */
	bool running;
	bool ending;		/* has exited and is in its last slice */
};

/* Time in one method, of one thread. */
struct tptp_sum {
	uint32_t method;
	uint32_t next;			/* index + 1 of the thread's next sum */
	uint32_t hash_next;		/* index + 1 in its bucket or in the free list */
	uint32_t thread;		/* index */
	int64_t base, minimum, maximum;	/* ns */
	uint64_t calls;
};

struct tptp_threads;

struct tptp_threads *tptp_threads_create(void);
void tptp_threads_destroy(struct tptp_threads *threads);

/* The thread @id if it is known, else NULL. The pointer holds until the thread is forgotten. */
struct tptp_thread *tptp_threads_find(struct tptp_threads *threads, int64_t id);

/*
 * The thread @id. A new thread is added if there is room. Else NULL: call
 * tptp_threads_forget(tptp_threads_victim()) to make room. The victim does not run.
 */
struct tptp_thread *tptp_threads_get(struct tptp_threads *threads, int64_t id);
struct tptp_thread *tptp_threads_victim(struct tptp_threads *threads);

/* Forget a thread. Take its sums first. */
void tptp_threads_forget(struct tptp_threads *threads, struct tptp_thread *thread);

/* Note that threadStart or threadEnd was written. This is remembered after forgetting. */
void tptp_threads_announce(struct tptp_threads *threads, struct tptp_thread *thread,
			   bool announced);

/* Add @ns in @method; false if there is no room for another sum. */
bool tptp_threads_add(struct tptp_threads *threads, struct tptp_thread *thread, uint32_t method,
		      int64_t ns);

/* Move the first sum of @thread to @sum; false if there is none. */
bool tptp_threads_take(struct tptp_threads *threads, struct tptp_thread *thread,
		       struct tptp_sum *sum);

/* Iterate over all known threads: *@at is 0 at first; NULL at the end. */
struct tptp_thread *tptp_threads_next(struct tptp_threads *threads, uint32_t *at);

#endif
