// SPDX-License-Identifier: MIT
/*
 * What others can have the module do with interrupts off or under a lock, all of it, with tables
 * that are nearly full: run with the plugin that counts instructions
 * (selftests/bench/switch/sections.c), on one CPU of 64 possible ones. Who looks at what it
 * counted is outside (uninterrupted.py).
 */
#include <linux/perf_event.h>
#include <pthread.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "../bench/switch/mark.h"
#include "burn.h"
#include "kselftest_harness.h"

#define USERS		80	/* more than the module tells apart */
#define RENAMES		20000	/* more than rows */
#define PATHS		480	/* of 4 KiB: nearly all of the string table */
#define THREADS		40
#define FORKS		200
#define MOVES		1000
#define SERIES		62

static struct kbarman_configure everything(uint32_t mode)
{
	struct kbarman_configure c = sampling(&cpu_clock, 1);

	c.mode = mode;
	c.sources = KBARMAN_SOURCE_ALL;
	c.flags |= KBARMAN_CONFIGURE_CHAIN_USER | KBARMAN_CONFIGURE_CHAIN_KERNEL |
		   KBARMAN_CONFIGURE_CHAIN_SWITCH;
	c.ring_bytes = 64 * KIB;	/* soon overwritten: rows are needed no more */
	c.max_series = SERIES;
	return c;
}

/* ---- what ordinary tasks do ---- */

static void become(uid_t user)
{
	if (setresuid(user, user, user))
		lost("no user %u", user);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
}

/* @work in a child that is @user's. */
static void as(uid_t user, void (*work)(void))
{
	pid_t child = fork();
	int status;

	if (!child) {
		if (user)
			become(user);
		work();
		_exit(0);
	}
	if (waitpid(child, &status, 0) != child || status)
		lost("a child of user %u did not do its work", user);
}

/* One living task for each of many users. */
static void make_users(pid_t children[USERS])
{
	char name[16];

	for (unsigned int i = 0; i < USERS; i++) {
		children[i] = fork();
		if (children[i])
			continue;
		become(1000 + i);
		snprintf(name, sizeof(name), "user%u", i);
		prctl(PR_SET_NAME, name);
		for (;;)
			pause();
	}
}

static void kill_users(pid_t children[USERS])
{
	for (unsigned int i = 0; i < USERS; i++) {
		kill(children[i], SIGKILL);
		waitpid(children[i], NULL, 0);
	}
}

/* Names that are as long as can be, and differ in their ends. */
static void rename_often(void)
{
	char name[16];

	for (unsigned int i = 0; i < RENAMES; i++) {
		snprintf(name, sizeof(name), "%015u", i);
		prctl(PR_SET_NAME, name);
		if (i % 4096 == 0)
			usleep(20000);	/* the collector has its turn */
	}
}

static void fork_often(void)
{
	pid_t child;

	for (unsigned int i = 0; i < FORKS; i++) {
		child = fork();
		if (!child) {
			char name[16];

			snprintf(name, sizeof(name), "child%u", i);
			prctl(PR_SET_NAME, name);
			_exit(0);
		}
		waitpid(child, NULL, 0);
	}
}

/* Files whose paths are about as long as there can be, alike but for their ends, as code. */
static void map_long_paths(void)
{
	char name[256];
	int fd;

	if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    (mkdir("/cover", 0700) && errno != EEXIST) ||
	    mount("cover", "/cover", "tmpfs", 0, NULL) || chdir("/cover"))
		lost("no file system of its own");
	enter_long_directory(0777);
	for (unsigned int i = 0; i < PATHS; i++) {
		snprintf(name, sizeof(name), "%0200u", i);
		fd = open(name, O_RDONLY | O_CREAT | O_CLOEXEC, 0777);
		if (fd < 0 ||
		    mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED)
			lost("%u files can't be mapped", i);
		close(fd);
	}
}

/* So long that it is sampled. */
static void *be_sampled(void *unused)
{
	uint64_t end = clock_ns(CLOCK_MONOTONIC) + 3 * PERIOD_NS;
	char name[16];

	snprintf(name, sizeof(name), "t%d", thread_id());
	prctl(PR_SET_NAME, name);
	while (clock_ns(CLOCK_MONOTONIC) < end)
		burn();
	return unused;
}

/* A huge process: each of its threads has a row of each of its mappings. */
static void map_in_threads(void)
{
	pthread_t threads[THREADS];

	map_long_paths();
	become(3000);
	for (unsigned int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, be_sampled, NULL))
			lost("no thread");
	for (unsigned int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	usleep(2500000);	/* rows are made, also of what the queue left out: once a second */
}

/* A process that maps, moves and unmaps code for long: its rows are ended and made anew. */
static void map_and_move(void)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	char *to = mmap(NULL, 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	be_sampled(NULL);
	for (unsigned int i = 0; i < MOVES; i++) {
		void *code = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd,
				  i % 16 * 4096);

		if (mremap(code, 4096, 4096, MREMAP_MAYMOVE | MREMAP_FIXED,
			   to + i % 2 * 4096) == MAP_FAILED)
			lost("no mapping was moved");
		if (i % 128 == 127)
			usleep(10000);	/* the worker has its turn */
	}
}

/* Frames enough for the longest call chain, at a switch and at a sample. */
static void __attribute__((noinline)) go_deep(unsigned int left)
{
	if (left)
		go_deep(left - 1);
	else
		for (unsigned int i = 0; i < 5; i++) {
			be_sampled(NULL);
			usleep(1000);
		}
	__asm__ volatile("");	/* no jump to itself */
}

static void call_deep(void)
{
	go_deep(2 * KBARMAN_DEFAULT_STACK);
}

static void switch_often(void)
{
	ping_pong(0, 1500);
}

/* ---- what those do that may write marks ---- */

static void put_text(int fd, uint32_t type, unsigned int length)
{
	static struct {
		struct kbarman_mark mark;
		char text[KBARMAN_MARK_TEXT_MAX];
	} m;

	m.mark = (struct kbarman_mark) {
		.size = sizeof(m.mark), .type = type, .text_bytes = length };
	memset(m.text, 'x', length);
	if (write(fd, &m, sizeof(m.mark) + length) < 0)
		lost("no mark");
}

static int define(int fd, unsigned int number)
{
	struct kbarman_mark_series s = {
		.size = sizeof(s), .colour = BM_SERIES_COLOUR_AUTOMATIC,
		.multiplier = 0x3ff0000000000000ULL,
		.series_class = BM_SERIES_CLASS_ABSOLUTE, .display = BM_SERIES_DISPLAY_AVERAGE,
		.series_composition = BM_SERIES_OVERLAY, .rendering_type = BM_RENDERING_LINE };

	snprintf(s.chart, sizeof(s.chart), "%063u", number);
	snprintf(s.name, sizeof(s.name), "%062un", number);
	snprintf(s.units, sizeof(s.units), "%031u", number);
	snprintf(s.description, sizeof(s.description), "%0127u", number);
	return call(fd, KBARMAN_MARK_SERIES, &s) ?: (int)s.series;
}

static void write_marks(void)
{
	int fd = open(KBARMAN_DEVICE, O_WRONLY | O_CLOEXEC), series = -1, last;
	struct kbarman_mark value;

	if (fd < 0)
		lost("the device does not open");
	for (unsigned int i = 0; i < SERIES + 10; i++) {
		last = define(fd, getuid() * 1000 + i);
		series = last < 0 ? series : last;
	}
	for (unsigned int i = 0; i < 300; i++)	/* more than the rate */
		put_text(fd, KBARMAN_MARK_STRING, i % 2 ? KBARMAN_MARK_TEXT_MAX : 1);
	value = (struct kbarman_mark) { .size = sizeof(value), .type = KBARMAN_MARK_COUNTER,
					.series = series };
	if (series >= 0 && write(fd, &value, sizeof(value)) < 0)
		lost("no value");
	close(fd);
}

/* ---- all of it ---- */

static void copy_symbols(void)
{
	static char buffer[1 << 16];
	FILE *from = fopen("/proc/kallsyms", "r"), *to = fopen("kallsyms", "w");
	size_t n;

	if (!from || !to)
		lost("no symbols");
	while ((n = fread(buffer, 1, sizeof(buffer), from)))
		fwrite(buffer, 1, n, to);
	fclose(from);
	if (fclose(to))
		lost("symbols can't be written");
}

static void storm(void)
{
	pid_t users[USERS];

	make_users(users);
	as(2000, rename_often);
	as(2001, fork_often);
	as(2002, call_deep);
	as(2002, map_and_move);
	for (uid_t user = 1000; user < 1010; user++)
		as(user, write_marks);
	/* The second time there are rows of the first to be emptied. */
	for (unsigned int i = 0; i < 2; i++) {
		as(0, map_in_threads);
		switch_often();
		as(2003 + i, rename_often);
	}
	kill_users(users);
}

FIXTURE(uninterrupted)
{
	int fd;
};

FIXTURE_SETUP(uninterrupted)
{
	self->fd = device_open_free();
}

FIXTURE_TEARDOWN(uninterrupted)
{
	close(self->fd);
}

TEST_F_TIMEOUT(uninterrupted, all_that_others_can_reach_is_counted, 3000)
{
	static const uint32_t modes[] = { KBARMAN_MODE_OVERWRITE, KBARMAN_MODE_STREAM };
	uint64_t strings = 0;
	struct kbarman_stats s;

	copy_symbols();
	ASSERT_EQ(0, chmod(KBARMAN_DEVICE, 0622));
	ASSERT_EQ(64, query(self->fd).nr_cpus);
	MARK(MARK_BEGIN);
	for (unsigned int i = 0; i < 2; i++) {
		ASSERT_EQ(0, configure(self->fd, everything(modes[i])));
		ASSERT_EQ(0, start(self->fd));
		storm();
		ASSERT_EQ(0, stop(self->fd));
		s = stats(self->fd, KBARMAN_CPU_ALL);
		EXPECT_LT(0, s.missed[KBARMAN_MISSED_TASK]);
		strings += s.missed[KBARMAN_MISSED_STRING];
		EXPECT_LT(0, s.missed[KBARMAN_MISSED_SERIES]);
	}
	EXPECT_LT(0, strings);
	MARK(MARK_END);
}

TEST_HARNESS_MAIN
