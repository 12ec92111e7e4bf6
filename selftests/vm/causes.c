// SPDX-License-Identifier: MIT
/*
 * Usage: causes DISK CGROUP
 *
 * A server whose requests are slow for causes that are known: DISK takes long for each request, and CGROUP, which
 * is threaded, has little time of each period. Prints the cause of each request, in order. The server's requests
 * are from its read(2) to its write(2) of one descriptor. All but the server and what keeps its CPU busy are on CPU 0.
 */
#include <err.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SLOW	400	/* ms */
#define PAGE	4096

enum cause { NOTHING, LOCK, FSYNC, PAGE_IN, PEER, THROTTLED, TIMER, CONTENTION, CAUSES };

static const char *const names[CAUSES] = {
	"nothing", "lock", "fsync", "page_in", "peer", "throttled", "timer", "contention",
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool held;
static int client_end, server_end, to_peer, to_holder[2], to_hog[2], disk;
static const volatile char *pages;
static const char *cgroup;
static pid_t server;

static void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		err(1, "CPU %d", cpu);
}

static void name(const char *text)
{
	prctl(PR_SET_NAME, text);
}

static double now(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* It seldom asks for the time: each time is a system call where the clock is slow, and each call two records. */
static void burn(clockid_t clock, double ms)
{
	for (double end = now(clock) + ms; now(clock) < end;)
		for (volatile int i = 0; i < 20000; i++)
			;
}

static void get(int fd)
{
	char byte;

	if (read(fd, &byte, 1) != 1)
		exit(0);
}

static void put(int fd, char byte)
{
	if (write(fd, &byte, 1) != 1)
		err(1, "write");
}

static void *holder(void *unused)
{
	name("holder");
	for (;;) {
		get(to_holder[0]);
		pthread_mutex_lock(&mutex);
		held = true;
		burn(CLOCK_MONOTONIC, SLOW);
		held = false;
		pthread_mutex_unlock(&mutex);
	}
	return unused;
}

/* It preempts the server. */
static void *hog(void *unused)
{
	name("hog");
	pin(1);
	if (pthread_setschedparam(pthread_self(), SCHED_FIFO, &(struct sched_param){ .sched_priority = 1 }))
		errx(1, "SCHED_FIFO");
	for (;;) {
		get(to_hog[0]);
		burn(CLOCK_MONOTONIC, SLOW);
	}
	return unused;
}

static void peer(int fd)
{
	name("peer");
	for (;;) {
		get(fd);
		burn(CLOCK_MONOTONIC, SLOW);
		put(fd, 0);
	}
}

static void serve(enum cause cause)
{
	char page[PAGE] = { 1 };

	switch (cause) {
	case LOCK:
		pthread_mutex_lock(&mutex);
		pthread_mutex_unlock(&mutex);
		break;
	case FSYNC:
		if (pwrite(disk, page, PAGE, 1000 * PAGE) != PAGE || fsync(disk))
			err(1, "disk");
		break;
	case PAGE_IN:
		(void)pages[5000 * PAGE];
		break;
	case PEER:
		put(to_peer, 0);
		get(to_peer);
		break;
	case THROTTLED:
		burn(CLOCK_THREAD_CPUTIME_ID, 40);
		break;
	case TIMER:
		nanosleep(&(struct timespec){ .tv_nsec = SLOW * 1000000L }, NULL);
		break;
	case CONTENTION:
		put(to_hog[1], 0);
		break;
	default:
		break;
	}
}

static void *serving(void *unused)
{
	char cause;

	name("server");
	pin(1);
	server = gettid();
	while (read(server_end, &cause, 1) == 1) {
		serve(cause);
		put(server_end, cause);
	}
	return unused;
}

/* The server runs in the cgroup or in that around it. */
static void move(bool in)
{
	char path[256];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%scgroup.threads", cgroup, in ? "" : "../");
	file = fopen(path, "w");
	if (!file || fprintf(file, "%d", server) < 0 || fclose(file))
		err(1, "%s", path);
}

static void ask(enum cause cause)
{
	char answer;

	if (cause == LOCK) {
		put(to_holder[1], 0);
		while (!held)
			usleep(1000);
	}
	if (cause == THROTTLED)
		move(true);
	put(client_end, cause);
	if (read(client_end, &answer, 1) != 1 || answer != (char)cause)
		err(1, "no answer");
	if (cause == THROTTLED)
		move(false);
	puts(names[cause]);
}

int main(int argc, char **argv)
{
	int pair[2];
	pthread_t thread;
	pid_t child;

	if (argc != 3)
		errx(2, "usage: causes DISK CGROUP");
	cgroup = argv[2];
	disk = open(argv[1], O_RDWR | O_CLOEXEC);
	pages = mmap(NULL, 10000 * PAGE, PROT_READ, MAP_SHARED, disk, 0);
	if (disk < 0 || pages == MAP_FAILED || madvise((void *)pages, 10000 * PAGE, MADV_RANDOM))
		err(1, "%s", argv[1]);
	pin(0);
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) || pipe(to_holder) || pipe(to_hog))
		err(1, "pipe");
	to_peer = pair[0];
	child = fork();
	if (!child) {
		close(pair[0]);
		peer(pair[1]);
	}
	close(pair[1]);
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
		err(1, "socketpair");
	client_end = pair[0];
	server_end = pair[1];
	if (pthread_create(&thread, NULL, holder, NULL) || pthread_create(&thread, NULL, hog, NULL) ||
	    pthread_create(&thread, NULL, serving, NULL))
		errx(1, "pthread_create");
	for (int cause = NOTHING; cause < CAUSES; cause++) {
		ask(NOTHING);
		ask(cause);
	}
	fflush(stdout);
	shutdown(client_end, SHUT_RDWR);
	pthread_join(thread, NULL);
	close(to_peer);
	waitpid(child, NULL, 0);
	return 0;
}
