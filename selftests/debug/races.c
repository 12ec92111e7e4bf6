// SPDX-License-Identifier: MIT
/*
 * races [ROUNDS]: eight threads that open, map, fork, move, protect, unmap, dup and close,
 * configure, start and stop, all on the same descriptors and maps, 10,000 rounds each. No
 * call may do anything but succeed or fail cleanly; afterwards nothing is held.
 *
 * The maps are looked at by the kernel's hand (process_vm_readv), which tells of a page
 * that is not there by EFAULT and not by a signal.
 */
#include <poll.h>
#include <pthread.h>
#include <sys/uio.h>

#include "lib/random.h"
#include "told.h"

#define THREADS	8
#define FILES	12
#define MAPS	16

struct map {
	char *at;
	size_t length;
};

/* A descriptor or map has one owner: who takes it out of its slot. */
static int files[FILES];		/* 0: none */
static struct map *maps[MAPS];
static unsigned long rounds = 10000;
/* Rounds; what succeeded in them; and changes to a map that were refused, as all have to be. */
static unsigned long made, opened, duplicated, mapped, looked, refused, forked, started;
static const char *fault;

static void count(unsigned long *what)
{
	__atomic_add_fetch(what, 1, __ATOMIC_RELAXED);
}

static int any_file(uint64_t r)
{
	return __atomic_load_n(&files[r % FILES], __ATOMIC_RELAXED);
}

static void put_file(uint64_t r, int fd)
{
	fd = __atomic_exchange_n(&files[r % FILES], fd > 0 ? fd : 0, __ATOMIC_ACQ_REL);
	if (fd > 0)
		close(fd);
}

static void put_map(uint64_t r, struct map *map)
{
	map = __atomic_exchange_n(&maps[r % MAPS], map, __ATOMIC_ACQ_REL);
	if (!map)
		return;
	if (munmap(map->at, map->length))
		fault = "a munmap that failed";
	free(map);
}

static void make_map(uint64_t r)
{
	struct kbarman_query q = { .size = sizeof(q) };
	struct map *map;
	void *at;

	if (call(any_file(r), KBARMAN_QUERY, &q) || !q.map_bytes)
		return;
	at = mmap(NULL, q.map_bytes, PROT_READ, MAP_SHARED, any_file(r >> 8),
		  (r >> 16) % q.nr_cpus * q.map_stride);
	if (at == MAP_FAILED)
		return;
	map = malloc(sizeof(*map));
	*map = (struct map) { .at = at, .length = q.map_bytes };
	count(&mapped);
	put_map(r >> 24, map);
}

/* A map out of its slot: this thread's now, to be put back. */
static struct map *take_map(uint64_t r)
{
	return __atomic_exchange_n(&maps[r % MAPS], NULL, __ATOMIC_ACQ_REL);
}

/* False: neither read nor EFAULT. */
static bool read_map(const struct map *map, uint64_t r)
{
	char bytes[4096];
	struct iovec to = { bytes, sizeof(bytes) };
	struct iovec from = { map->at + r % map->length, sizeof(bytes) };

	if (process_vm_readv(getpid(), &to, 1, &from, 1, 0) <= 0)
		return errno == EFAULT;
	count(&looked);
	return true;
}

static void must_fail(bool failed, const char *otherwise)
{
	if (failed)
		count(&refused);
	else
		fault = otherwise;
}

static void disturb_map(uint64_t r)
{
	struct map *map = take_map(r);

	if (!map)
		return;
	switch (r >> 8 & 7) {
	case 0:
		must_fail(mremap(map->at, map->length, map->length * 2, MREMAP_MAYMOVE) ==
			  MAP_FAILED, "a map that grew");
		break;
	case 1:
		must_fail(mremap(map->at, map->length, map->length / 2 & ~4095UL, 0) ==
			  MAP_FAILED, "a map that shrank");
		break;
	case 2:
		must_fail(mprotect(map->at, map->length, PROT_READ | PROT_WRITE),
			  "a map that became writable");
		break;
	case 3:
		must_fail(munmap(map->at, 4096), "a map that was split");
		break;
	case 4:
		madvise(map->at, map->length, MADV_DONTNEED);
		break;
	case 5:
		madvise(map->at, map->length, MADV_DONTFORK);
		break;
	default:
		if (!read_map(map, r >> 16))
			fault = "a map that can't be looked at";
	}
	put_map(r >> 40, map);
}

/* The child looks at a map of its parent's, and leaves with all of them. */
static void fork_once(uint64_t r)
{
	struct map *map = take_map(r);
	pid_t child = fork();
	int status;

	if (!child)
		_exit(map && (!read_map(map, r >> 16) ||
			      (r >> 8 & 1 && munmap(map->at, map->length))));
	if (child > 0) {
		if (waitpid(child, &status, 0) == child && !status)
			count(&forked);
		else
			fault = "a child that did not end well";
	}
	if (map)
		put_map(r >> 40, map);
}

static void open_file(uint64_t r)
{
	int fd = open(KBARMAN_DEVICE, O_RDONLY | O_CLOEXEC);

	if (fd > 0)
		count(&opened);
	put_file(r, fd);
}

static void duplicate_file(uint64_t r)
{
	int from = any_file(r >> 8), fd = from ? dup(from) : 0;

	if (fd > 0)
		count(&duplicated);
	put_file(r, fd);
}

/*
 * The steps of a session, on one descriptor, so that many come as far as to record; some stop
 * short of it, and others are at the same descriptor. Who owns the session keeps the others out
 * until it is closed.
 */
static void run_session(uint64_t slot, uint64_t r)
{
	int fd = any_file(slot);
	struct kbarman_configure c = {
		.mode = r & 1, .ring_bytes = 64 * KIB << (r >> 1 & 1),
		.sources = KBARMAN_SOURCE_SCHED | (r >> 2 & KBARMAN_SOURCE_IDLE),
		.max_tasks = 64, .max_maps = 64, .max_strings = 4096 };

	if (r >> 8 & 7 && configure(fd, c))
		return;
	if (r >> 16 & 7 && !start(fd))
		count(&started);
	if (r >> 24 & 1)
		stop(fd);
	if (r >> 25 & 3)
		open_file(slot);
}

static void one_round(void)
{
	uint64_t r = random_u64();
	struct pollfd p = { .fd = any_file(r >> 8), .events = POLLIN };
	struct kbarman_stats s = { .size = sizeof(s), .cpu = KBARMAN_CPU_ALL };

	switch (r & 15) {
	case 0:
	case 1:
		open_file(r >> 8);
		break;
	case 2:
		duplicate_file(r >> 8);
		break;
	case 3:
		put_file(r >> 8, 0);
		break;
	case 4:
	case 5:
	case 6:
		make_map(r >> 8);
		break;
	case 7:
		put_map(r >> 8, NULL);
		break;
	case 8:
		fork_once(r >> 8);
		break;
	case 9:
		if (!poll(&p, 1, 0))
			call(p.fd, KBARMAN_STATS, &s);
		break;
	case 10:
	case 11:
	case 12:
		run_session(r >> 8, r >> 16);
		break;
	default:
		disturb_map(r >> 8);
	}
}

static void *run(void *unused)
{
	unsigned long i;

	(void)unused;
	for (i = 0; i < rounds && !fault && !told_to_end; i++) {
		one_round();
		count(&made);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS];
	unsigned int i;

	if (argc > 1)
		rounds = strtoul(argv[1], NULL, 0);
	random_start();
	module_want();
	told_begin(&made);
	for (i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, run, NULL))
			lost("no thread");
	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	for (i = 0; i < FILES; i++)
		put_file(i, 0);
	for (i = 0; i < MAPS; i++)
		put_map(i, NULL);
	tap_note("%d threads, %lu rounds each: %lu opened, %lu duplicated, %lu mapped, "
		 "%lu looked at, %lu changes refused, %lu forked, %lu started",
		 THREADS, made / THREADS, opened, duplicated, mapped, looked, refused, forked, started);
	if (!tap_ok(!fault, "racing_calls_succeed_or_fail_cleanly"))
		tap_note("%s", fault);
	tap_ok(opened && duplicated && mapped && looked && refused && forked,
	       "and_all_kinds_of_them_succeed_meanwhile");
	/* Beside others, most sessions are theirs. */
	tap_ok(told_to_end ? started : started * 100 * THREADS >= made,
	       "and_sessions_start_meanwhile");
	return told_done();
}
