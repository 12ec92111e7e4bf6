/* SPDX-License-Identifier: MIT */
/*
 * What the TPTP export must remember of threads and of the time they spent, in
 * bounded memory: a capture may have any number of either.
 */
#ifndef KB_LIB_EXPORT_TPTP_THREADS_H
#define KB_LIB_EXPORT_TPTP_THREADS_H

#include <stdbool.h>
#include <stdint.h>

enum tptp_wait {
	TPTP_WAITS_NOT,
	TPTP_WAITS,		/* monWait was written */
	TPTP_CONTENDS,		/* monContendedEnter was written */
};

struct tptp_thread {
	int64_t id;		/* the task's; -(c + 1): the idle task of CPU c */
	uint64_t object;	/* that it waits for */
	uint32_t held_on;	/* core + 1 where methods of it are open, 0 = nowhere */
	uint32_t sums;		/* index + 1 of its first sum */
	uint32_t next;		/* index + 1 in its bucket, or of the free ones */
	uint8_t waits;		/* enum tptp_wait */
	bool used;
	bool announced;		/* threadStart was written */
	bool running;
	bool ending;		/* has exited, and is on its last slice */
};

/* Time in one method, of one thread. */
struct tptp_sum {
	uint32_t method;
	uint32_t next;			/* index + 1 of the thread's */
	uint32_t hash_next;		/* index + 1 in its bucket, or of the free ones */
	uint32_t thread;		/* index */
	int64_t base, minimum, maximum;	/* ns */
	uint64_t calls;
};

struct tptp_threads;

struct tptp_threads *tptp_threads_create(void);
void tptp_threads_destroy(struct tptp_threads *threads);

/* The thread @id if it is known. Pointers hold until the thread is forgotten. */
struct tptp_thread *tptp_threads_find(struct tptp_threads *threads, int64_t id);

/*
 * The thread @id, made known if there is room; else NULL, and there will be after
 * tptp_threads_forget(tptp_threads_victim()). That one does not run.
 */
struct tptp_thread *tptp_threads_get(struct tptp_threads *threads, int64_t id);
struct tptp_thread *tptp_threads_victim(struct tptp_threads *threads);

/* Drop what is known of a thread; its sums must have been taken. */
void tptp_threads_forget(struct tptp_threads *threads, struct tptp_thread *thread);

/* threadStart or threadEnd was written: remembered even of the forgotten. */
void tptp_threads_announce(struct tptp_threads *threads, struct tptp_thread *thread,
			   bool announced);

/* Add @ns in @method; false if there is no room for one more sum. */
bool tptp_threads_add(struct tptp_threads *threads, struct tptp_thread *thread, uint32_t method,
		      int64_t ns);

/* Take the first sum of @thread out into @sum; false if there is none. */
bool tptp_threads_take(struct tptp_threads *threads, struct tptp_thread *thread,
		       struct tptp_sum *sum);

/* All that are known, one a call from *@at 0 on; NULL at the end. */
struct tptp_thread *tptp_threads_next(struct tptp_threads *threads, uint32_t *at);

#endif
