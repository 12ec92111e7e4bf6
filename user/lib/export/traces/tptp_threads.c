// SPDX-License-Identifier: MIT
/*
 * Two hash tables of fixed size and a bitmap. The hashes are seeded at random, because a capture
 * chooses the keys. The bitmap has a bit for every task id that Linux can give: whether its
 * threadStart was written. So a thread that was forgotten is not announced a second time.
 */
#include <stdlib.h>

#include "base/hash.h"
#include "export/traces/tptp_threads.h"

#define MAX_THREADS	(64u << 10)
#define MAX_SUMS	(128u << 10)
#define MAX_TASK_ID	(4u << 20)	/* PID_MAX_LIMIT of 64-bit kernels */

struct tptp_threads {
	struct tptp_thread *threads;		/* MAX_THREADS; unused ones take no memory */
	uint32_t *buckets;			/* MAX_THREADS: index + 1 */
	uint32_t nr, free, hand;
	struct tptp_sum *sums;			/* MAX_SUMS; from the first sum on */
	uint32_t *sum_buckets;
	uint32_t nr_sums, free_sum;
	uint64_t seed;
	uint8_t *announced;			/* a bit for each id below MAX_TASK_ID */
};

struct tptp_threads *tptp_threads_create(void)
{
	struct tptp_threads *threads = calloc(1, sizeof(*threads));

	if (!threads)
		return NULL;
	threads->threads = calloc(MAX_THREADS, sizeof(*threads->threads));
	threads->buckets = calloc(MAX_THREADS, sizeof(*threads->buckets));
	threads->sums = calloc(MAX_SUMS, sizeof(*threads->sums));
	threads->sum_buckets = calloc(MAX_SUMS, sizeof(*threads->sum_buckets));
	threads->announced = calloc(MAX_TASK_ID / 8, 1);
	threads->seed = kb_hash_seed(threads);
	if (threads->threads && threads->buckets && threads->sums && threads->sum_buckets &&
	    threads->announced)
		return threads;
	tptp_threads_destroy(threads);
	return NULL;
}

void tptp_threads_destroy(struct tptp_threads *threads)
{
	if (!threads)
		return;
	free(threads->threads);
	free(threads->buckets);
	free(threads->sums);
	free(threads->sum_buckets);
	free(threads->announced);
	free(threads);
}

static uint32_t *bucket_of(struct tptp_threads *threads, int64_t id)
{
	return &threads->buckets[kb_hash_word(threads->seed, (uint64_t)id) >> 40 & (MAX_THREADS - 1)];
}

struct tptp_thread *tptp_threads_find(struct tptp_threads *threads, int64_t id)
{
	uint32_t at = *bucket_of(threads, id);

	while (at && threads->threads[at - 1].id != id)
		at = threads->threads[at - 1].next;
	return at ? &threads->threads[at - 1] : NULL;
}

struct tptp_thread *tptp_threads_get(struct tptp_threads *threads, int64_t id)
{
	struct tptp_thread *thread = tptp_threads_find(threads, id);
	uint32_t *bucket, index;

	if (thread)
		return thread;
	if (threads->free) {
		index = threads->free - 1;
		threads->free = threads->threads[index].next;
	} else if (threads->nr < MAX_THREADS) {
		index = threads->nr++;
	} else {
		return NULL;
	}
	thread = &threads->threads[index];
	bucket = bucket_of(threads, id);
	*thread = (struct tptp_thread){ .id = id, .next = *bucket, .used = true };
	if (id >= 0 && id < MAX_TASK_ID)
		thread->announced = threads->announced[id / 8] >> (id % 8) & 1;
	*bucket = index + 1;
	return thread;
}

/* The next thread that neither runs nor has open methods. The search may look at all threads. */
struct tptp_thread *tptp_threads_victim(struct tptp_threads *threads)
{
	struct tptp_thread *thread = NULL;

	for (uint32_t i = 0; i < MAX_THREADS; i++) {
		thread = &threads->threads[threads->hand++ % MAX_THREADS];
		if (thread->used && !thread->running && !thread->held_on && thread->id > 0)
			break;
	}
	return thread;
}

void tptp_threads_forget(struct tptp_threads *threads, struct tptp_thread *thread)
{
	uint32_t index = thread - threads->threads;
	uint32_t *at = bucket_of(threads, thread->id);

	while (*at != index + 1)
		at = &threads->threads[*at - 1].next;
	*at = thread->next;
	thread->used = false;
	thread->next = threads->free;
	threads->free = index + 1;
}

void tptp_threads_announce(struct tptp_threads *threads, struct tptp_thread *thread,
			   bool announced)
{
	thread->announced = announced;
	if (thread->id < 0 || thread->id >= MAX_TASK_ID)
		return;
	if (announced)
		threads->announced[thread->id / 8] |= 1 << thread->id % 8;
	else
		threads->announced[thread->id / 8] &= ~(1 << thread->id % 8);
}

static uint32_t *sum_bucket(struct tptp_threads *threads, uint32_t thread, uint32_t method)
{
	uint64_t key = (uint64_t)thread << 32 | method;

	return &threads->sum_buckets[kb_hash_word(threads->seed, key) >> 40 & (MAX_SUMS - 1)];
}

bool tptp_threads_add(struct tptp_threads *threads, struct tptp_thread *thread, uint32_t method,
		      int64_t ns)
{
	uint32_t owner = thread - threads->threads;
	uint32_t *bucket = sum_bucket(threads, owner, method), at = *bucket;
	struct tptp_sum *sum;

	while (at && (threads->sums[at - 1].thread != owner ||
		      threads->sums[at - 1].method != method))
		at = threads->sums[at - 1].hash_next;
	if (!at) {
		if (threads->free_sum) {
			at = threads->free_sum;
			threads->free_sum = threads->sums[at - 1].hash_next;
		} else if (threads->nr_sums < MAX_SUMS) {
			at = ++threads->nr_sums;
		} else {
			return false;
		}
		threads->sums[at - 1] = (struct tptp_sum){
			.method = method,
			.next = thread->sums,
			.hash_next = *bucket,
			.thread = owner,
			.minimum = ns,
			.maximum = ns,
		};
		*bucket = at;
		thread->sums = at;
	}
	sum = &threads->sums[at - 1];
	if (__builtin_add_overflow(sum->base, ns, &sum->base))
		sum->base = INT64_MAX;
	if (ns < sum->minimum)
		sum->minimum = ns;
	if (ns > sum->maximum)
		sum->maximum = ns;
	sum->calls++;
	return true;
}

bool tptp_threads_take(struct tptp_threads *threads, struct tptp_thread *thread,
		       struct tptp_sum *sum)
{
	uint32_t *at, index = thread->sums;

	if (!index)
		return false;
	*sum = threads->sums[index - 1];
	thread->sums = sum->next;
	at = sum_bucket(threads, sum->thread, sum->method);
	while (*at != index)
		at = &threads->sums[*at - 1].hash_next;
	*at = sum->hash_next;
	threads->sums[index - 1].hash_next = threads->free_sum;
	threads->free_sum = index;
	return true;
}

struct tptp_thread *tptp_threads_next(struct tptp_threads *threads, uint32_t *at)
{
	while (*at < threads->nr) {
		struct tptp_thread *thread = &threads->threads[(*at)++];

		if (thread->used)
			return thread;
	}
	return NULL;
}
