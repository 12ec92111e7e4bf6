// SPDX-License-Identifier: MIT
/*
 * One workload between two marks for the plugin that counts instructions; prints how many
 * times the machine switched tasks meanwhile.
 *
 *	measure yield TIMES		two threads on one CPU, each giving way to the other
 *	measure fill TIMES		the same, without marks
 *	measure run ROOT COMMAND...	a command, from its start to its end, with ROOT as root
 *	measure warm ROOT COMMAND...	the same, without marks
 *	measure whole COMMAND...	a command, with all that runs beside it, as ordinary
 *					tasks run
 *	measure wait-KIND TIMES		two threads on one CPU, each waiting for the other: KIND is call
 *					(poll), pipe, socket or futex
 *	measure syscall TIMES		system calls that do little; prints how many
 *	measure sleep TIMES NS		two switches every NS: to idle and back
 *	measure sample NS ROOT COMMAND...	the same; prints how many periods of NS it took
 *	measure sample_warm NS ROOT COMMAND...	the same, without marks
 */
#include <dirent.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "mark.h"

extern char **environ;

static _Atomic bool running, over;

static void __attribute__((noreturn)) die(const char *what)
{
	perror(what);
	exit(1);
}

/* Of all CPUs since boot, as the kernel counts. */
static unsigned long long switches(void)
{
	static char text[1 << 16];
	ssize_t length;
	char *line;
	int fd = open("/proc/stat", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		die("/proc/stat");
	length = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (length <= 0)
		die("/proc/stat");
	text[length] = '\0';
	line = strstr(text, "\nctxt ");
	return line ? strtoull(line + 6, NULL, 10) : 0;
}

static void *give_way(void *unused)
{
	running = true;
	while (!over)
		sched_yield();
	return unused;
}

/* The number of the first task of that name; 0: there is none. */
static pid_t find_task(const char *name)
{
	char path[64], comm[32];
	struct dirent *entry;
	DIR *proc = opendir("/proc");
	pid_t pid = 0;
	FILE *file;

	while (proc && !pid && (entry = readdir(proc))) {
		snprintf(path, sizeof(path), "/proc/%.16s/comm", entry->d_name);
		file = fopen(path, "r");
		if (!file)
			continue;
		if (fgets(comm, sizeof(comm), file) && !strncmp(comm, name, strlen(name)))
			pid = atoi(entry->d_name);
		fclose(file);
	}
	if (proc)
		closedir(proc);
	return pid;
}

/*
 * Nothing else comes in between, and who runs next is not up to a clock: so the same work takes
 * the same switches every time, with a tracer and without. But the kernel's task for softirqs must
 * come: if it waited for the end, each interrupt would look for it, in some runs.
 */
static void be_undisturbed(void)
{
	const struct sched_param lowest = { .sched_priority = 1 }, above = { .sched_priority = 2 };
	pid_t softirqs = find_task("ksoftirqd/0");

	if (sched_setscheduler(0, SCHED_FIFO, &lowest) || !softirqs ||
	    sched_setscheduler(softirqs, SCHED_FIFO, &above))
		die("SCHED_FIFO");
}

static void take_first_cpu(void)
{
	cpu_set_t first;

	CPU_ZERO(&first);
	CPU_SET(0, &first);
	if (sched_setaffinity(0, sizeof(first), &first))
		die("the first CPU");
}

static unsigned long long yield(unsigned long times, bool marked)
{
	unsigned long long before;
	pthread_t other;

	take_first_cpu();
	if (pthread_create(&other, NULL, give_way, NULL))
		die("yield");
	while (!running)
		sched_yield();
	before = switches();
	if (marked)
		MARK(MARK_BEGIN);
	while (times--)
		sched_yield();
	if (marked)
		MARK(MARK_END);
	before = switches() - before;
	over = true;
	pthread_join(other, NULL);
	return before;
}

/* ---- two threads, each of which waits until the other one has waited ---- */

enum { US, THEM };

/* What each of them waits for: a byte at the first descriptor, or the lock, as glibc's mutex has it. */
static struct side {
	int ends[2];
	struct {
		_Atomic uint32_t lock;
		uint32_t count, owner, users, kind;
	} mutex;
} sides[2];

static void give_byte(struct side *side)
{
	if (write(side->ends[1], "", 1) != 1)
		die("write");
}

static void take_byte(struct side *side)
{
	char byte;

	if (read(side->ends[0], &byte, 1) != 1)
		die("read");
}

static void take_polled_byte(struct side *side)
{
	struct pollfd wanted = { .fd = side->ends[0], .events = POLLIN };

	if (poll(&wanted, 1, -1) != 1)
		die("poll");
	take_byte(side);
}

static void give_lock(struct side *side)
{
	side->mutex.lock = 0;
	syscall(SYS_futex, &side->mutex, FUTEX_WAKE_PRIVATE, 1);
}

static void take_lock(struct side *side)
{
	while (side->mutex.lock)
		syscall(SYS_futex, &side->mutex, FUTEX_WAIT_PRIVATE, 2, NULL);
	side->mutex.lock = 2;
}

static const struct way {
	const char *name;
	void (*give)(struct side *side), (*take)(struct side *side);
} ways[] = {
	{ "wait-call", give_byte, take_polled_byte },
	{ "wait-pipe", give_byte, take_byte },
	{ "wait-socket", give_byte, take_byte },
	{ "wait-futex", give_lock, take_lock },
};

static const struct way *find_way(const char *name)
{
	for (const struct way *way = ways; way < ways + sizeof(ways) / sizeof(ways[0]); way++)
		if (!strcmp(way->name, name))
			return way;
	return NULL;
}

static void *answer(void *data)
{
	const struct way *way = data;

	sides[US].mutex.owner = gettid();
	for (;;) {
		way->take(&sides[THEM]);
		if (over)
			return NULL;
		way->give(&sides[US]);
	}
}

static unsigned long long wait_for_each_other(const struct way *way, unsigned long times)
{
	bool sockets = !strcmp(way->name, "wait-socket");
	unsigned long long before;
	pthread_t other;

	take_first_cpu();
	for (struct side *side = sides; side < sides + 2; side++) {
		if (sockets ? socketpair(AF_UNIX, SOCK_STREAM, 0, side->ends) : pipe(side->ends))
			die(way->name);
		side->mutex.lock = 2;
		side->mutex.users = 1;
	}
	sides[THEM].mutex.owner = gettid();
	if (pthread_create(&other, NULL, answer, (void *)way))
		die(way->name);
	way->give(&sides[THEM]);
	way->take(&sides[US]);
	before = switches();
	MARK(MARK_BEGIN);
	while (times--) {
		way->give(&sides[THEM]);
		way->take(&sides[US]);
	}
	MARK(MARK_END);
	before = switches() - before;
	over = true;
	way->give(&sides[THEM]);
	pthread_join(other, NULL);
	return before;
}

static unsigned long long call(unsigned long times)
{
	MARK(MARK_BEGIN);
	for (unsigned long i = 0; i < times; i++)
		syscall(SYS_getppid);
	MARK(MARK_END);
	return times;
}

/* A task that runs for a moment every @ns. */
static unsigned long long sleep_often(unsigned long times, unsigned long ns)
{
	unsigned long long before = switches();
	struct timespec next;

	clock_gettime(CLOCK_MONOTONIC, &next);
	MARK(MARK_BEGIN);
	while (times--) {
		next.tv_nsec += (long)ns;
		if (next.tv_nsec >= 1000000000) {
			next.tv_nsec -= 1000000000;
			next.tv_sec++;
		}
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
	}
	MARK(MARK_END);
	return switches() - before;
}

/* @root: NULL: not another one. */
static void run(const char *root, char **command, bool marked)
{
	int status = 0, error;
	pid_t pid;

	if (root && (chroot(root) || chdir("/")))
		die(root);
	if (marked)
		MARK(MARK_BEGIN);
	error = posix_spawnp(&pid, command[0], NULL, NULL, command, environ);
	if (!error)
		waitpid(pid, &status, 0);
	if (marked)
		MARK(MARK_END);
	if (error || status) {
		fprintf(stderr, "measure: %s failed\n", command[0]);
		exit(1);
	}
}

static unsigned long long run_switches(const char *root, char **command)
{
	unsigned long long before = switches();

	run(root, command, true);
	return switches() - before;
}

static unsigned long long now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000000000ULL + time.tv_nsec;
}

static unsigned long long run_periods(unsigned long ns, const char *root, char **command,
				      bool marked)
{
	unsigned long long before = now();

	run(root, command, marked);
	return (now() - before) / ns;
}

int main(int argc, char **argv)
{
	unsigned long long count;

	if (argc > 2 && !strcmp(argv[1], "whole")) {
		printf("%llu\n", run_switches(NULL, argv + 2));
		return 0;
	}
	if (argc == 4 && !strcmp(argv[1], "sleep")) {
		printf("%llu\n", sleep_often(strtoul(argv[2], NULL, 0), strtoul(argv[3], NULL, 0)));
		return 0;
	}
	be_undisturbed();
	if (argc == 3 && (!strcmp(argv[1], "yield") || !strcmp(argv[1], "fill"))) {
		count = yield(strtoul(argv[2], NULL, 0), argv[1][0] == 'y');
	} else if (argc == 3 && !strcmp(argv[1], "syscall")) {
		count = call(strtoul(argv[2], NULL, 0));
	} else if (argc == 3 && find_way(argv[1])) {
		count = wait_for_each_other(find_way(argv[1]), strtoul(argv[2], NULL, 0));
	} else if (argc > 3 && !strcmp(argv[1], "run")) {
		count = run_switches(argv[2], argv + 3);
	} else if (argc > 3 && !strcmp(argv[1], "warm")) {
		count = 0;
		run(argv[2], argv + 3, false);
	} else if (argc > 4 && !strncmp(argv[1], "sample", 6)) {
		count = run_periods(strtoul(argv[2], NULL, 0), argv[3], argv + 4, !argv[1][6]);
	} else {
		fprintf(stderr, "usage: measure yield TIMES | fill TIMES | wait-KIND TIMES | syscall TIMES |\n"
				"       run ROOT COMMAND... | warm ROOT COMMAND... |\n"
				"       whole COMMAND... | sleep TIMES NS |\n"
				"       sample NS ROOT COMMAND... | sample_warm NS ROOT COMMAND...\n");
		return 2;
	}
	printf("%llu\n", count);
	return 0;
}
