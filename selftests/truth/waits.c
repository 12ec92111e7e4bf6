// SPDX-License-Identifier: MIT
/*
 * Threads whose waits are known: who waits for whom, and who wakes whom, in which order:
 *
 *	pipe	pipe-0 writes to pipe-1, which writes to pipe-2, which writes to pipe-3
 *	futex	a convoy: futex-1, futex-2 and futex-3 wait in this order for a mutex of
 *		futex-0; each one gives it back when it has had it
 *	timer	a nap
 *	device	FILE is read, past the page cache
 *	work	work-writer writes to a terminal; a worker of the kernel passes it on to
 *		work-reader
 *	lock	priority inversion on one CPU: lock-high waits for a mutex of lock-low, in
 *		front of which lock-mid runs
 *	boost	the same with a mutex whose owner inherits the priority: boost-mid can't run
 *
 *	waits FILE [CPU]
 *
 * Each of these graphs is run several times. The thread at the beginning of round N marks
 * GRAPH-N-begin, and the one at the end GRAPH-N-end; between them is the critical path. Before a
 * round begins, everybody waits for it, and no CPU has them any more: nobody can be woken who has
 * not gone to sleep yet. FILE is on the device, whose interrupts CPU takes: there it is read, for
 * on another CPU they may come while the thread is still on its way to sleep.
 *
 * Printed are GRAPH=ID,ID,... lines (the threads), and GRAPH.rounds=N,N,... lines: the rounds to
 * look at. The first round is none of them, and of one thread alone only those are in which it
 * slept: a timer or a device may be ready before the thread is asleep.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include <kbarman/mark.h>

#define ROUNDS		5
#define ALONE_ROUNDS	200	/* at most, until it has slept in ROUNDS of them */
#define THREADS		4	/* of a graph, at most */
#define NAP_NS		20000000L
#define BURN_NS		20000000ULL	/* longer than interrupts usually are */
#define PAGE		4096
#define STACK		(256 * 1024)
#define ANY_CPU		(-1)
#define DEVICE_CPU	(-2)	/* what main() was told */
#define RT_RUNTIME	"/proc/sys/kernel/sched_rt_runtime_us"

struct graph;

struct waiter {
	const struct graph *graph;
	int number;
	pthread_t thread;
	pid_t id;
	sem_t go;
	int in, out;		/* descriptors */
	bool slept;		/* in this round */
};

struct graph {
	const char *name;
	int threads;
	const char *names[THREADS];	/* NULL: the graph's, with a number */
	int cpus[THREADS];
	int priorities[THREADS];	/* 0: an ordinary thread */
	void (*prepare)(void);
	void (*begin)(void);		/* a round, in the main thread; NULL: waiter 0 may go */
	void (*run)(struct waiter *w, int round);	/* in each thread; waiter 0 may go */
	bool (*is_ready)(void);		/* for a round; NULL: if all threads wait */
};

static struct waiter *waiters;	/* of this graph; those of the graphs before wait for ever */
static pthread_mutex_t mutex;
static sem_t holding;
static int finished;		/* threads, with this round */
static const char *file;
static int device_cpu = ANY_CPU;
static void *page;

static void __attribute__((noreturn)) fail(const char *what)
{
	fprintf(stderr, "waits: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void need(bool is_there, const char *what)
{
	if (!is_there)
		fail(what);
}

static void mark(const struct waiter *w, int round, const char *what)
{
	char text[64];

	snprintf(text, sizeof(text), "%s-%d-%s", w->graph->name, round, what);
	kb_mark_bookmark(0, text);
}

static void wait_for(sem_t *semaphore)
{
	while (sem_wait(semaphore))
		;
}

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

static void burn(void)
{
	uint64_t until = clock_ns(CLOCK_THREAD_CPUTIME_ID) + BURN_NS;

	while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < until)
		;
}

static void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	need(!sched_setaffinity(0, sizeof(set), &set), "a CPU");
}

/* ---- who waits ---- */

static ssize_t read_text(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got = fd < 0 ? -1 : read(fd, text, size - 1);

	if (fd >= 0)
		close(fd);
	text[got > 0 ? got : 0] = '\0';
	return got;
}

/* It sleeps, and no CPU has it any more. */
static bool is_waiting(pid_t task)
{
	char path[64], text[512];

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)task);
	if (read_text(path, text, sizeof(text)) <= 0 || !strstr(text, ") S "))
		return false;
	snprintf(path, sizeof(path), "/proc/%d/syscall", (int)task);
	need(read_text(path, text, sizeof(text)) > 0, path);
	return strncmp(text, "running", 7) != 0;
}

static void wait_until_waiting(const struct waiter *w)
{
	while (!is_waiting(w->id))
		usleep(1000);
}

/* The workers of the kernel that are bound to no CPU have nothing to do. */
static bool workers_are_idle(void)
{
	DIR *proc = opendir("/proc");
	char path[300], text[512];
	struct dirent *entry;
	bool idle = true;

	need(proc, "/proc");
	while (idle && (entry = readdir(proc))) {
		if (entry->d_name[0] < '0' || entry->d_name[0] > '9')
			continue;
		snprintf(path, sizeof(path), "/proc/%s/stat", entry->d_name);
		if (read_text(path, text, sizeof(text)) > 0 && strstr(text, "(kworker/u"))
			idle = strstr(text, ") I ");
	}
	closedir(proc);
	return idle;
}

/* ---- graphs ---- */

static void pipe_prepare(void)
{
	int ends[2];

	for (int i = 1; i < THREADS; i++) {
		need(!pipe2(ends, O_CLOEXEC), "a pipe");
		waiters[i].in = ends[0];
		waiters[i - 1].out = ends[1];
	}
}

static void pipe_run(struct waiter *w, int round)
{
	char byte = 0;

	if (w->number)
		need(read(w->in, &byte, 1) == 1, "a pipe to read");
	else
		mark(w, round, "begin");
	if (w->number < THREADS - 1)
		need(write(w->out, &byte, 1) == 1, "a pipe to write");
	else
		mark(w, round, "end");
}

static void mutex_prepare(int protocol)
{
	pthread_mutexattr_t how;

	pthread_mutexattr_init(&how);
	need(!pthread_mutexattr_setprotocol(&how, protocol), "a mutex of this kind");
	pthread_mutex_init(&mutex, &how);
}

static void futex_prepare(void)
{
	mutex_prepare(PTHREAD_PRIO_NONE);
}

/* Each one is at the mutex before the next one comes. From sem_post() on it is not asleep. */
static void futex_begin(void)
{
	for (int i = 0; i < THREADS; i++) {
		sem_post(&waiters[i].go);
		wait_until_waiting(&waiters[i]);
	}
	sem_post(&holding);
}

static void futex_run(struct waiter *w, int round)
{
	if (w->number)
		wait_for(&w->go);
	pthread_mutex_lock(&mutex);
	if (!w->number) {
		wait_for(&holding);
		mark(w, round, "begin");
	} else if (w->number == THREADS - 1) {
		mark(w, round, "end");
	}
	pthread_mutex_unlock(&mutex);
}

static void timer_run(struct waiter *w, int round)
{
	const struct timespec nap = { .tv_nsec = NAP_NS };

	mark(w, round, "begin");
	clock_nanosleep(CLOCK_MONOTONIC, 0, &nap, NULL);
	mark(w, round, "end");
}

static void device_prepare(void)
{
	waiters[0].in = open(file, O_RDONLY | O_DIRECT | O_CLOEXEC);
	need(waiters[0].in >= 0, file);
}

static void device_run(struct waiter *w, int round)
{
	mark(w, round, "begin");
	need(pread(w->in, page, PAGE, 0) == PAGE, file);
	mark(w, round, "end");
}

static void work_prepare(void)
{
	int terminal = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	struct termios how;

	need(terminal >= 0 && !grantpt(terminal) && !unlockpt(terminal), "a terminal");
	waiters[0].out = terminal;
	waiters[1].in = open(ptsname(terminal), O_RDWR | O_NOCTTY | O_CLOEXEC);
	need(waiters[1].in >= 0 && !tcgetattr(waiters[1].in, &how), "its other end");
	cfmakeraw(&how);	/* no echo, which would be a wakeup in the other direction */
	tcsetattr(waiters[1].in, TCSANOW, &how);
}

static void work_run(struct waiter *w, int round)
{
	char byte = 'x';

	if (w->number == 0) {
		mark(w, round, "begin");
		need(write(w->out, &byte, 1) == 1, "a terminal to write");
	} else {
		need(read(w->in, &byte, 1) == 1, "a terminal to read");
		mark(w, round, "end");
	}
}

enum { LOW, MID, HIGH };

static void boost_prepare(void)
{
	mutex_prepare(PTHREAD_PRIO_INHERIT);
}

/* On one CPU: whoever is woken runs at once if its priority is higher, and not otherwise. */
static void inversion_run(struct waiter *w, int round)
{
	switch (w->number) {
	case LOW:
		pthread_mutex_lock(&mutex);
		sem_post(&waiters[HIGH].go);
		burn();
		sem_post(&waiters[MID].go);
		burn();
		pthread_mutex_unlock(&mutex);
		break;
	case MID:
		wait_for(&w->go);
		burn();
		break;
	case HIGH:
		wait_for(&w->go);
		mark(w, round, "begin");
		burn();
		pthread_mutex_lock(&mutex);
		mark(w, round, "end");
		burn();
		pthread_mutex_unlock(&mutex);
		break;
	}
}

static const struct graph graphs[] = {
	{ .name = "pipe", .threads = 4, .cpus = { 0, 1, 1, 0 }, .prepare = pipe_prepare,
	  .run = pipe_run },
	{ .name = "futex", .threads = 4, .cpus = { ANY_CPU, ANY_CPU, ANY_CPU, ANY_CPU },
	  .prepare = futex_prepare, .begin = futex_begin, .run = futex_run },
	{ .name = "timer", .threads = 1, .names = { "timer" }, .cpus = { ANY_CPU },
	  .run = timer_run },
	{ .name = "device", .threads = 1, .names = { "device" }, .cpus = { DEVICE_CPU },
	  .prepare = device_prepare, .run = device_run },
	{ .name = "work", .threads = 2, .names = { "work-writer", "work-reader" },
	  .cpus = { ANY_CPU, ANY_CPU }, .prepare = work_prepare, .run = work_run,
	  .is_ready = workers_are_idle },
	{ .name = "lock", .threads = 3, .names = { "lock-low", "lock-mid", "lock-high" },
	  .cpus = { 1, 1, 1 }, .priorities = { 10, 20, 30 }, .prepare = futex_prepare,
	  .run = inversion_run },
	{ .name = "boost", .threads = 3, .names = { "boost-low", "boost-mid", "boost-high" },
	  .cpus = { 1, 1, 1 }, .priorities = { 10, 20, 30 }, .prepare = boost_prepare,
	  .run = inversion_run },
};

/* ---- threads ---- */

/* How often it went to sleep. */
static long sleeps(void)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	return usage.ru_nvcsw;
}

static void become(const struct waiter *w)
{
	const struct graph *graph = w->graph;
	const struct sched_param how = { .sched_priority = graph->priorities[w->number] };
	int cpu = graph->cpus[w->number] == DEVICE_CPU ? device_cpu : graph->cpus[w->number];
	char name[16];

	if (graph->names[0])
		snprintf(name, sizeof(name), "%s", graph->names[w->number]);
	else
		snprintf(name, sizeof(name), "%s-%d", graph->name, w->number);
	prctl(PR_SET_NAME, name);
	if (cpu != ANY_CPU)
		pin(cpu);
	if (how.sched_priority)
		need(!sched_setscheduler(0, SCHED_FIFO, &how), "a priority");
}

static void *run(void *argument)
{
	struct waiter *w = argument;
	long before;
	int round;

	become(w);
	__atomic_store_n(&w->id, (pid_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
	for (round = 0;; round++) {
		if (w->number == 0)
			wait_for(&w->go);
		before = sleeps();
		w->graph->run(w, round);
		w->slept = sleeps() != before;
		__atomic_add_fetch(&finished, 1, __ATOMIC_RELEASE);
	}
	return NULL;
}

static void create(const struct graph *graph)
{
	pthread_attr_t how;

	waiters = calloc(THREADS, sizeof(*waiters));
	need(waiters, "memory");
	if (graph->prepare)
		graph->prepare();
	pthread_attr_init(&how);
	pthread_attr_setstacksize(&how, STACK);
	printf("%s=", graph->name);
	for (int i = 0; i < graph->threads; i++) {
		struct waiter *w = &waiters[i];

		w->graph = graph;
		w->number = i;
		need(!sem_init(&w->go, 0, 0) && !pthread_create(&w->thread, &how, run, w),
		     "a thread");
		while (!__atomic_load_n(&w->id, __ATOMIC_ACQUIRE))
			usleep(1000);
		printf("%s%d", i ? "," : "", (int)w->id);
	}
	printf("\n");
}

/* ---- rounds ---- */

static void play(const struct graph *graph)
{
	for (int i = 0; i < graph->threads; i++)
		wait_until_waiting(&waiters[i]);
	while (graph->is_ready && !graph->is_ready())
		usleep(1000);
	__atomic_store_n(&finished, 0, __ATOMIC_RELEASE);
	if (graph->begin)
		graph->begin();
	else
		sem_post(&waiters[0].go);
	while (__atomic_load_n(&finished, __ATOMIC_ACQUIRE) != graph->threads)
		usleep(1000);
}

/* Round 0 is for what is made when it is needed first, such as a spare worker. */
static void play_all(const struct graph *graph)
{
	int round, good = 0, most = graph->threads == 1 ? ALONE_ROUNDS : ROUNDS;

	printf("%s.rounds=", graph->name);
	for (round = 0; round <= most && good < ROUNDS; round++) {
		play(graph);
		if (round && (graph->threads > 1 || waiters[0].slept))
			printf("%s%d", good++ ? "," : "", round);
	}
	printf("\n");
}

static void write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	need(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text), path);
	close(fd);
}

int main(int argc, char **argv)
{
	char before[32] = "";

	if (argc != 2 && argc != 3) {
		fprintf(stderr, "usage: waits FILE [CPU]\n");
		return 2;
	}
	file = argv[1];
	if (argc == 3)
		device_cpu = atoi(argv[2]);
	kb_mark_open();
	page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	need(page != MAP_FAILED, "a page");
	sem_init(&holding, 0, 0);
	/* who waits for its own page has one more wait */
	need(!mlockall(MCL_CURRENT | MCL_FUTURE), "memory that stays");
	/* or Linux takes the CPU from threads with a priority now and then */
	need(read_text(RT_RUNTIME, before, sizeof(before)) > 0, RT_RUNTIME);
	write_text(RT_RUNTIME, "-1");
	for (size_t i = 0; i < sizeof(graphs) / sizeof(graphs[0]); i++) {
		create(&graphs[i]);
		play_all(&graphs[i]);
	}
	write_text(RT_RUNTIME, before);
	return 0;
}
