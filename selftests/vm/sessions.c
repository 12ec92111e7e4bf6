// SPDX-License-Identifier: MIT
/*
 * Several sessions at a time: each records what it would record alone, and none disturbs another,
 * whatever becomes of it.
 */
#include <poll.h>
#include <sys/epoll.h>

#include "kselftest_harness.h"

#include "sessions.h"

#define PARAMETER	"/sys/module/kbarman/parameters/sessions"

/* Whether the switches between this thread and @echo alternate, as they do on a CPU. */
struct alternation {
	unsigned int to_me, to_echo, faults;
};

static struct alternation alternation_of(int fd, pid_t echo)
{
	struct walk walk = walk_begin(map_cpu(fd, 0));
	struct alternation a = { 0 };
	const union record *r;
	uint32_t last = 0;

	while ((r = walk_next(&walk))) {
		uint32_t task = r->task_switch.task_id;

		if (r->header.record_type != BM_RECORD_TASK_SWITCH ||
		    (task != (uint32_t)thread_id() && task != (uint32_t)echo))
			continue;
		a.to_me += task == (uint32_t)thread_id();
		a.to_echo += task == (uint32_t)echo;
		/* Another task may come between two turns of one. */
		a.faults += last == task && a.to_echo > ROUNDS + 50;
		last = task;
	}
	munmap((void *)walk.map, query(fd).map_bytes);
	return a;
}

/* ---- several ---- */

TEST_F(sessions, each_descriptor_has_its_own)
{
	self->fd[0] = begin(small(KBARMAN_MODE_STREAM));
	self->fd[1] = begin(small(KBARMAN_MODE_OVERWRITE));
	EXPECT_NE(query(self->fd[0]).session, query(self->fd[1]).session);
	EXPECT_EQ(KBARMAN_MODE_STREAM, query(self->fd[0]).mode);
	EXPECT_EQ(KBARMAN_MODE_OVERWRITE, query(self->fd[1]).mode);
	ASSERT_EQ(0, start(self->fd[0]));
	EXPECT_FALSE(runs(self->fd[1]));
	ASSERT_EQ(0, start(self->fd[1]));
	ASSERT_EQ(0, stop(self->fd[0]));
	EXPECT_TRUE(runs(self->fd[1]));
	EXPECT_EQ(-EINVAL, consume(self->fd[1], 0, 0));
	EXPECT_EQ(0, consume(self->fd[0], 0, 0));
	close(self->fd[0]);
	self->fd[0] = -1;
	EXPECT_TRUE(runs(self->fd[1]));
	ping_pong(0, ROUNDS);
	ASSERT_EQ(0, stop(self->fd[1]));
	EXPECT_GOOD(self->fd[1]);
	EXPECT_LE(2 * ROUNDS, judge_cpu(self->fd[1], 0).by_type[BM_RECORD_TASK_SWITCH]);
}

/* Two that overwrite, a stream, and one of a chosen process: one more starts, one after another. */
#define KINDS	4

static struct kbarman_configure kind(unsigned int which, uint32_t *pid)
{
	struct kbarman_configure c = small(which == 2 ? KBARMAN_MODE_STREAM :
					   KBARMAN_MODE_OVERWRITE);

	if (which == 3) {
		c.pids_ptr = (uintptr_t)pid;
		c.nr_pids = 1;
		c.flags = KBARMAN_CONFIGURE_INHERIT;
		c.sources |= KBARMAN_SOURCE_MAPS;
	}
	return c;
}

/* The @nr-th order of KINDS things: factorial base. */
static void order(unsigned int nr, unsigned int things[KINDS])
{
	unsigned int left[KINDS] = { 0, 1, 2, 3 }, i, j, pick;

	for (i = 0; i < KINDS; i++) {
		pick = nr % (KINDS - i);
		nr /= KINDS - i;
		things[i] = left[pick];
		for (j = pick; j + 1 < KINDS - i; j++)
			left[j] = left[j + 1];
	}
}

TEST_F_TIMEOUT(sessions, start_and_stop_in_every_order, 300 * SLOWNESS)
{
	uint32_t pid = getpid();
	unsigned int first[KINDS], last[KINDS], nr, i;

	for (i = 0; i < KINDS; i++)
		self->fd[i] = begin(kind(i, &pid));
	for (nr = 0; nr < 24; nr++) {
		order(nr, first);
		order((nr * 7 + 5) % 24, last);
		for (i = 0; i < KINDS; i++) {
			ASSERT_EQ(0, start(self->fd[first[i]]));
			ping_pong(0, 20);
		}
		for (i = 0; i < KINDS; i++) {
			ping_pong(0, 20);
			ASSERT_EQ(0, stop(self->fd[last[i]]));
		}
		for (i = 0; i < KINDS; i++) {
			EXPECT_GOOD(self->fd[i]);
			/* it saw at least the rounds between the last start and the first stop */
			EXPECT_LE(80, judge_cpu(self->fd[i], 0).by_type[BM_RECORD_TASK_SWITCH])
				TH_LOG("session %u in order %u", i, nr);
		}
	}
}

TEST_F(sessions, a_chosen_process_is_chosen_in_its_session_only)
{
	struct kbarman_configure c = small(KBARMAN_MODE_STREAM);
	struct echo e = echo_create(0);
	uint32_t pid = e.echo, other;

	c.sources = KBARMAN_SOURCE_SCHED;
	self->fd[1] = begin(c);
	c.pids_ptr = (uintptr_t)&pid;
	c.nr_pids = 1;
	self->fd[0] = begin(c);
	ASSERT_EQ(0, start(self->fd[0]));
	ASSERT_EQ(0, start(self->fd[1]));
	other = ping_pong(0, ROUNDS);
	echo_rounds(&e, ROUNDS);
	ASSERT_EQ(0, stop(self->fd[0]));
	ASSERT_EQ(0, stop(self->fd[1]));
	EXPECT_LE(ROUNDS, alternation_of(self->fd[0], pid).to_echo);
	EXPECT_LE(ROUNDS, alternation_of(self->fd[1], pid).to_echo);
	EXPECT_LE(ROUNDS, alternation_of(self->fd[1], other).to_echo);
	/* Its own last switch may be one to another task. */
	EXPECT_GT(ROUNDS / 10, alternation_of(self->fd[0], other).to_echo);
	echo_destroy(&e);
}

/* ---- one is as it is alone ---- */

static const char *const facts[] = { "ext", "host", "release", "machine", "states", "callchain",
				     "max_stack", "counts" };

struct alone {
	struct alternation alternation;
	struct kbarman_stats stats;
	const char *fault;
	struct bm_protocol_header_start header;
	char facts[8][256];
};

static struct alone record_a_stream(void)
{
	struct kbarman_configure c = small(KBARMAN_MODE_STREAM);
	struct alone a = { 0 };
	unsigned int i;
	const void *map;
	pid_t echo;
	int fd;

	c.ring_bytes = 4 * MIB;
	fd = begin(c);
	if (start(fd))
		lost("no start");
	echo = ping_pong(0, ROUNDS);
	if (stop(fd))
		lost("no stop");
	a.alternation = alternation_of(fd, echo);
	a.stats = stats(fd, KBARMAN_CPU_ALL);
	a.fault = audit(fd);
	map = map_cpu(fd, 0);
	a.header = *capture_header(map);
	for (i = 0; i < sizeof(facts) / sizeof(*facts); i++)
		snprintf(a.facts[i], sizeof(a.facts[i]), "%s",
			 capture_fact(map, facts[i]) ?: "(none)");
	munmap((void *)map, query(fd).map_bytes);
	close(fd);
	return a;
}

TEST_F(sessions, one_among_others_is_what_it_is_alone)
{
	struct alone alone = record_a_stream(), among;
	uint32_t pid = getpid();
	unsigned int i;

	for (i = 0; i < KINDS; i++) {
		self->fd[i] = begin(kind(i, &pid));
		ASSERT_EQ(0, start(self->fd[i]));
	}
	among = record_a_stream();
	EXPECT_EQ(NULL, alone.fault);
	EXPECT_EQ(NULL, among.fault) TH_LOG("%s", among.fault);
	EXPECT_EQ(0, lost_records(&among.stats));
	EXPECT_LE(ROUNDS, alone.alternation.to_echo);
	EXPECT_LE(ROUNDS, among.alternation.to_echo);
	EXPECT_LE(ROUNDS, among.alternation.to_me);
	/* Another task comes when it likes: with PREEMPT_RT an interrupt is one, too. */
	EXPECT_GE(alone.alternation.faults + ROUNDS / 100, among.alternation.faults);
	EXPECT_EQ(alone.header.header_length, among.header.header_length);
	EXPECT_EQ(alone.header.timer_sample_rate, among.header.timer_sample_rate);
	EXPECT_EQ(0, memcmp(&alone.header.config_constants, &among.header.config_constants,
			    sizeof(alone.header.config_constants)));
	for (i = 0; i < sizeof(facts) / sizeof(*facts); i++)
		EXPECT_STREQ(alone.facts[i], among.facts[i]);
}

/* Samples of one session are not those of another. */
TEST_F(sessions, each_has_samples_of_its_own)
{
	struct kbarman_configure c = small(KBARMAN_MODE_STREAM);
	unsigned int i;

	c.sources = KBARMAN_SOURCE_PMU | KBARMAN_SOURCE_MAPS;
	c.nr_events = 1;
	for (i = 0; i < 2; i++) {
		c.events_ptr = sampled_hz(&cpu_clock, 1, i ? 100 : 1000);
		self->fd[i] = begin(c);
		ASSERT_EQ(0, start(self->fd[i]));
	}
	while (stats(self->fd[1], 0).written < 20)
		ping_pong(0, 10);
	EXPECT_LT(stats(self->fd[1], 0).written, stats(self->fd[0], 0).written);
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, stop(self->fd[i]));
		EXPECT_GOOD(self->fd[i]);
		EXPECT_EQ(i ? 100 : 1000,
			  capture_header(map_cpu(self->fd[i], 0))->timer_sample_rate);
	}
}

/* ---- as many as there may be ---- */

TEST_F(sessions, a_ninth_is_refused)
{
	int ninth = device_open(), i;

	for (i = 0; i < MOST; i++) {
		self->fd[i] = begin(small(KBARMAN_MODE_OVERWRITE));
		ASSERT_EQ(0, start(self->fd[i]));
	}
	EXPECT_EQ(-EBUSY, configure(ninth, small(KBARMAN_MODE_STREAM)));
	for (i = 0; i < MOST; i++)
		EXPECT_TRUE(runs(self->fd[i]));
	close(self->fd[3]);
	self->fd[3] = -1;
	EXPECT_EQ(0, configure(ninth, small(KBARMAN_MODE_STREAM)));
	EXPECT_EQ(0, start(ninth));
	ping_pong(0, ROUNDS);
	for (i = 0; i < MOST; i++) {
		if (self->fd[i] < 0)
			continue;
		ASSERT_EQ(0, stop(self->fd[i]));
		EXPECT_GOOD(self->fd[i]);
	}
	close(ninth);
}

TEST_F(sessions, parameter_says_how_many)
{
	char before[16];
	int third, error;

	third = device_open();
	read_file(PARAMETER, before, sizeof(before));
	write_file(PARAMETER, "2");
	self->fd[0] = begin(small(KBARMAN_MODE_OVERWRITE));
	self->fd[1] = begin(small(KBARMAN_MODE_OVERWRITE));
	error = configure(third, small(KBARMAN_MODE_OVERWRITE));
	write_file(PARAMETER, before);
	EXPECT_EQ(-EBUSY, error);
	EXPECT_EQ(0, configure(third, small(KBARMAN_MODE_OVERWRITE)));
	close(third);
}

TEST_F(sessions, configure_again_takes_no_more_room)
{
	int i, round;

	for (i = 0; i < MOST; i++)
		self->fd[i] = begin(small(KBARMAN_MODE_OVERWRITE));
	for (round = 0; round < 3; round++)
		for (i = 0; i < MOST; i++)
			EXPECT_EQ(0, configure(self->fd[i], small(KBARMAN_MODE_STREAM)));
}

TEST_F(sessions, configure_that_fails_takes_no_place)
{
	struct kbarman_configure c = small(KBARMAN_MODE_OVERWRITE);
	uint32_t nobody = 4194300;
	int fd = device_open(), i;

	c.pids_ptr = (uintptr_t)&nobody;
	c.nr_pids = 1;
	for (i = 0; i < 2 * MOST; i++) {
		EXPECT_EQ(-ESRCH, configure(fd, c));
		EXPECT_EQ(0, query(fd).state);
		EXPECT_EQ(-ENODATA, start(fd));
	}
	for (i = 0; i < MOST - 1; i++)
		self->fd[i] = begin(small(KBARMAN_MODE_OVERWRITE));
	EXPECT_EQ(0, configure(fd, small(KBARMAN_MODE_OVERWRITE)));
	/* Its own session is as it was. */
	EXPECT_EQ(-ESRCH, configure(fd, c));
	EXPECT_EQ(KBARMAN_STATE_CONFIGURED | KBARMAN_STATE_OWNED | KBARMAN_STATE_MINE,
		  query(fd).state);
	EXPECT_EQ(0, start(fd));
	close(fd);
}

/* ---- who owns none ---- */

TEST_F(sessions, who_owns_none_sees_the_newest)
{
	int observer = device_open();
	uint64_t first;

	EXPECT_EQ(0, query(observer).state);
	self->fd[0] = begin(small(KBARMAN_MODE_OVERWRITE));
	first = query(self->fd[0]).session;
	EXPECT_EQ(first, query(observer).session);
	EXPECT_EQ(-EPERM, start(observer));
	EXPECT_EQ(-EPERM, stop(observer));
	self->fd[1] = begin(small(KBARMAN_MODE_STREAM));
	EXPECT_EQ(query(self->fd[1]).session, query(observer).session);
	EXPECT_LT(first, query(observer).session);
	EXPECT_EQ(first, query(self->fd[0]).session);
	/* Configured anew, the first one is the newest. */
	ASSERT_EQ(0, configure(self->fd[0], small(KBARMAN_MODE_OVERWRITE)));
	EXPECT_EQ(KBARMAN_MODE_OVERWRITE, query(observer).mode);
	close(observer);
}

TEST_F(sessions, what_is_left_stays_until_its_room_is_needed)
{
	int observer = device_open(), i;

	self->fd[0] = begin(small(KBARMAN_MODE_OVERWRITE));
	ASSERT_EQ(0, start(self->fd[0]));
	ping_pong(0, ROUNDS);
	close(self->fd[0]);
	EXPECT_EQ(KBARMAN_STATE_CONFIGURED, query(observer).state);
	EXPECT_LE(ROUNDS, judge_cpu(observer, 0).records);
	for (i = 0; i < MOST; i++)
		self->fd[i] = begin(small(KBARMAN_MODE_STREAM));
	EXPECT_EQ(query(self->fd[MOST - 1]).session, query(observer).session);
	close(observer);
}

static int poll_now(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	if (poll(&p, 1, 0) < 0)
		lost("no poll");
	return p.revents;
}

/* Registered once, before there is a session, and woken by whatever the descriptor sees later. */
TEST_F(sessions, a_poller_is_woken_by_the_session_that_is_seen)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLET }, got;
	int observer = device_open(), e = epoll_create1(EPOLL_CLOEXEC);
	struct kbarman_configure c = small(KBARMAN_MODE_OVERWRITE);

	ASSERT_LE(0, e);
	ASSERT_EQ(0, epoll_ctl(e, EPOLL_CTL_ADD, observer, &event));
	EXPECT_EQ(1, epoll_wait(e, &got, 1, 0));
	EXPECT_TRUE(got.events & EPOLLHUP);
	c.watermark = 16 * KIB;
	self->fd[0] = begin(c);
	self->fd[1] = begin(c);
	ASSERT_EQ(0, start(self->fd[0]));
	ASSERT_EQ(0, start(self->fd[1]));
	EXPECT_EQ(0, poll_now(observer) & POLLHUP);
	while (epoll_wait(e, &got, 1, 0) > 0)
		;
	do
		ping_pong(0, 50);
	while (epoll_wait(e, &got, 1, 0) <= 0);
	EXPECT_FALSE(got.events & EPOLLHUP);
	ASSERT_EQ(0, stop(self->fd[0]));
	EXPECT_EQ(0, poll_now(observer) & POLLHUP);
	ASSERT_EQ(0, stop(self->fd[1]));
	EXPECT_EQ(1, epoll_wait(e, &got, 1, 10000));
	EXPECT_NE(0, poll_now(observer) & POLLHUP);
	close(e);
	close(observer);
}

/* ---- what each may see ---- */

TEST_F(sessions, kernel_addresses_are_those_of_each_opener)
{
	struct kbarman_query q;
	int poor, observer;

	set_capabilities(ALL_CAPABILITIES & ~CAPABILITY(CAP_SYSLOG), ALL_CAPABILITIES);
	poor = device_open();
	observer = device_open();
	set_capabilities(ALL_CAPABILITIES, ALL_CAPABILITIES);
	ASSERT_EQ(0, configure(poor, small(KBARMAN_MODE_OVERWRITE)));
	q = query(observer);
	EXPECT_NE(MAP_FAILED, try_map(observer, &q, 0));
	self->fd[0] = begin(small(KBARMAN_MODE_OVERWRITE));
	q = query(observer);
	EXPECT_EQ(query(self->fd[0]).session, q.session);
	EXPECT_EQ(MAP_FAILED, try_map(observer, &q, 0));
	EXPECT_EQ(EPERM, errno);
	q = query(poor);
	EXPECT_NE(MAP_FAILED, try_map(poor, &q, 0));
	q = query(self->fd[0]);
	EXPECT_NE(MAP_FAILED, try_map(self->fd[0], &q, 0));
	close(poor);
	close(observer);
}

/* ---- what may happen to one ---- */

TEST_F(sessions, a_killed_reader_takes_only_its_own_along)
{
	int ready[2], status;
	pid_t reader;
	char byte;

	self->fd[0] = begin(small(KBARMAN_MODE_OVERWRITE));
	ASSERT_EQ(0, start(self->fd[0]));
	ASSERT_EQ(0, pipe(ready));
	reader = fork();
	ASSERT_LE(0, reader);
	if (!reader) {
		int fd = begin(small(KBARMAN_MODE_STREAM));

		close(self->fd[0]);
		if (start(fd))
			lost("no start");
		map_cpu(fd, 0);
		if (write(ready[1], "", 1) == 1)
			for (;;)
				pause();
	}
	ASSERT_EQ(1, read(ready[0], &byte, 1));
	ping_pong(0, ROUNDS);
	ASSERT_EQ(0, kill(reader, SIGKILL));
	ASSERT_EQ(reader, waitpid(reader, &status, 0));
	EXPECT_TRUE(runs(self->fd[0]));
	ping_pong(0, ROUNDS);
	ASSERT_EQ(0, stop(self->fd[0]));
	EXPECT_GOOD(self->fd[0]);
	EXPECT_LE(4 * ROUNDS, judge_cpu(self->fd[0], 0).by_type[BM_RECORD_TASK_SWITCH]);
}

#define CPU	1	/* the one that comes and goes */

TEST_F(sessions, all_follow_a_cpu_that_goes_and_comes)
{
	pid_t before, after;
	int i;

	if (query(self->fd[0] = device_open()).nr_cpus < 2 ||
	    access("/sys/devices/system/cpu/cpu1/online", W_OK))
		SKIP(return, "no CPU can be unplugged");
	close(self->fd[0]);
	for (i = 0; i < 3; i++) {
		self->fd[i] = begin(small(i ? KBARMAN_MODE_STREAM : KBARMAN_MODE_OVERWRITE));
		ASSERT_EQ(0, start(self->fd[i]));
	}
	before = work_on(CPU);
	cpu_set_online(CPU, false);
	/* One that was restarted meanwhile is followed, too. */
	ASSERT_EQ(0, stop(self->fd[2]));
	ASSERT_EQ(0, start(self->fd[2]));
	cpu_set_online(CPU, true);
	for (i = 0; i < 3; i++)
		wait_until_recorded(self->fd[i], CPU);
	after = work_on(CPU);
	for (i = 0; i < 3; i++) {
		EXPECT_EQ(2, stats(self->fd[i], KBARMAN_CPU_ALL).online);
		ASSERT_EQ(0, stop(self->fd[i]));
		EXPECT_GOOD(self->fd[i]);
		if (i < 2)
			EXPECT_LE(100, switches_to(self->fd[i], CPU, before));
		EXPECT_LE(100, switches_to(self->fd[i], CPU, after));
	}
}

TEST_F(sessions, the_module_stays_while_one_is_there)
{
	const void *map;
	size_t length;
	int i;

	for (i = 0; i < 3; i++) {
		self->fd[i] = begin(small(KBARMAN_MODE_OVERWRITE));
		ASSERT_EQ(0, start(self->fd[i]));
	}
	map = map_cpu(self->fd[1], 0);
	length = query(self->fd[1]).map_bytes;
	for (i = 0; i < 3; i++) {
		EXPECT_EQ(-EWOULDBLOCK, module_unload());
		close(self->fd[i]);
		self->fd[i] = -1;
	}
	EXPECT_EQ(-EWOULDBLOCK, module_unload());
	EXPECT_EQ(NULL, judge(map, length, 0).fault);
	munmap((void *)map, length);
	EXPECT_EQ(0, module_unload());
	ASSERT_EQ(0, module_load());
}

/* Several that configure, start, stop and go at the same time, more than there may be. */
TEST_F_TIMEOUT(sessions, crowds_do_not_harm_each_other, 300 * SLOWNESS)
{
	unsigned int child, round;
	int status;

	self->fd[0] = begin(small(KBARMAN_MODE_OVERWRITE));
	ASSERT_EQ(0, start(self->fd[0]));
	for (child = 0; child < 10; child++) {
		if (fork())
			continue;
		close(self->fd[0]);
		pin(child % sysconf(_SC_NPROCESSORS_ONLN));
		for (round = 0; round < SLOWED(12) + 1; round++) {
			struct kbarman_configure c = small((child + round) % 2);
			int fd = device_open(), error;
			const char *fault;

			if (child % 2)
				c.sources |= KBARMAN_SOURCE_MAPS | KBARMAN_SOURCE_MARKS;
			error = configure(fd, c);
			if (error && error != -EBUSY)
				_exit(1);
			if (!error && (start(fd) || (round % 3 && stop(fd))))
				_exit(2);
			fault = error || !(round % 3) ? NULL : audit(fd);
			if (fault)
				lost("%s", fault);
			close(fd);
		}
		_exit(0);
	}
	while (wait(&status) > 0)
		EXPECT_EQ(0, status);
	EXPECT_TRUE(runs(self->fd[0]));
	ASSERT_EQ(0, stop(self->fd[0]));
	EXPECT_GOOD(self->fd[0]);
}

TEST_HARNESS_MAIN
